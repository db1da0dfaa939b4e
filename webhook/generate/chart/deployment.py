"""The Deployment of the webhook."""

from __future__ import annotations

from typing import Final

from gpugate.webhook.generate.chart.names import (
    AUTHORITIES,
    CLIENT_CA,
    FULL_NAME,
    HAS_CLIENT_CA,
    IMAGE,
    IS_SELF,
    NAMESPACE,
    POLICY_FILE,
    SERVICE_ACCOUNT,
    TLS_SECRET,
    metadata,
    selector,
)
from gpugate.webhook.generate.chart.terms import Each, If, Node, Value, Variable, both, call, no, text
from gpugate.webhook.generate.entries import RiskGroup

# A Pod that ends is taken out of the Service meanwhile; then it still takes new connections for as long as it drains.
_PRE_STOP_SECONDS: Final = 5
# What the process takes at most to end its connections, after it has drained.
_CLOSING_SECONDS: Final = 15
_POLICY: Final = "/etc/gpugate/policy"
_TLS: Final = "/etc/gpugate/tls"
_CLIENT_CA: Final = "/etc/gpugate/client-ca"


def deployment() -> Node:
    """Return it."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(),
        "spec": {
            "replicas": If(no(Value("autoscaling.enabled")), Value("replicaCount")),
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": selector()},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {
                    "labels": call("mergeOverwrite", {}, Value("pods.labels"), selector()),
                    "annotations": call("mergeOverwrite", {}, Value("pods.annotations"), _CHECKSUM),
                },
                "spec": _pod(),
            },
        },
    }


# A policy file that is refused keeps new Pods from being ready, so that an upgrade stops and the old ones go on.
_CHECKSUM: Final[Node] = {"gpugate.dev/policy-checksum": call("sha256sum", POLICY_FILE)}


def pod_settings() -> dict[str, Node]:
    """Return what every Pod of the chart has."""
    return {
        # A Service called gpugate would set GPUGATE_PORT in the environment, which is a fallback of a flag.
        "enableServiceLinks": False,
        "imagePullSecrets": If(Value("image.pullSecrets"), Value("image.pullSecrets")),
        "securityContext": Value("pods.securityContext"),
        "nodeSelector": If(Value("pods.nodeSelector"), Value("pods.nodeSelector")),
        "affinity": If(Value("pods.affinity"), Value("pods.affinity")),
        "tolerations": If(Value("pods.tolerations"), Value("pods.tolerations")),
    }


def container_settings() -> dict[str, Node]:
    """Return what every container of the chart has."""
    return {
        "image": IMAGE,
        "imagePullPolicy": Value("image.pullPolicy"),
        "securityContext": Value("pods.containerSecurityContext"),
        "resources": Value("pods.resources"),
    }


def _pod() -> Node:
    return {
        "serviceAccountName": SERVICE_ACCOUNT,
        **pod_settings(),
        "priorityClassName": If(Value("pods.priorityClassName"), Value("pods.priorityClassName")),
        "hostNetwork": If(Value("pods.hostNetwork"), Value("pods.hostNetwork")),
        "dnsPolicy": If(Value("pods.hostNetwork"), "ClusterFirstWithHostNet"),
        "terminationGracePeriodSeconds": call(
            "add", Value("server.drainSeconds"), _PRE_STOP_SECONDS + _CLOSING_SECONDS
        ),
        "topologySpreadConstraints": [_spread("topology.kubernetes.io/zone"), _spread("kubernetes.io/hostname")],
        "containers": [
            {
                "name": "gpugate",
                **container_settings(),
                "command": ["gpugate"],
                "args": _arguments(),
                "env": If(Value("server.environment"), Value("server.environment")),
                "ports": [
                    {"name": "reviews", "containerPort": Value("server.port"), "protocol": "TCP"},
                    {"name": "health", "containerPort": Value("server.healthPort"), "protocol": "TCP"},
                ],
                "startupProbe": {**_probe("/healthz"), "periodSeconds": 1, "failureThreshold": 60},
                "livenessProbe": {**_probe("/healthz"), "periodSeconds": 10, "timeoutSeconds": 5},
                "readinessProbe": {**_probe("/readyz"), "periodSeconds": 2, "timeoutSeconds": 2},
                "lifecycle": {"preStop": {"sleep": {"seconds": _PRE_STOP_SECONDS}}},
                "volumeMounts": [
                    {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 -- of the container's own
                    {"name": "policy", "mountPath": _POLICY, "readOnly": True},
                    If(no(IS_SELF), {"name": "tls", "mountPath": _TLS, "readOnly": True}),
                    If(HAS_CLIENT_CA, {"name": "client-ca", "mountPath": _CLIENT_CA, "readOnly": True}),
                ],
            }
        ],
        "volumes": [
            {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
            {"name": "policy", "configMap": {"name": text(FULL_NAME, "-policy")}},
            If(no(IS_SELF), {"name": "tls", "secret": {"secretName": TLS_SECRET}}),
            If(HAS_CLIENT_CA, {"name": "client-ca", "configMap": {"name": CLIENT_CA}}),
        ],
    }


def _arguments() -> Node:
    return [
        "serve",
        text("--port=", _number("server.port")),
        text("--health-port=", _number("server.healthPort")),
        text("--workers=", _number("server.workers")),
        text("--drain=", _number("server.drainSeconds")),
        f"--policy-file={_POLICY}/policy.yaml",
        text("--namespace=", NAMESPACE),
        text("--service=", FULL_NAME),
        text("--webhook-configuration=", FULL_NAME),
        If(IS_SELF, text("--certificate-secret=", AUTHORITIES)),
        If(both(IS_SELF, Value("webhooks.url")), text("--url=", Value("webhooks.url"))),
        *_meant(),
        If(no(IS_SELF), f"--tls-cert={_TLS}/tls.crt"),
        If(no(IS_SELF), f"--tls-key={_TLS}/tls.key"),
        If(HAS_CLIENT_CA, f"--client-ca={_CLIENT_CA}/ca.crt"),
        If(
            HAS_CLIENT_CA,
            Each(("name",), Value("clientAuthentication.names"), text("--client-name=", Variable("name"))),
        ),
        Each(("argument",), Value("server.arguments"), Variable("argument")),
    ]


def _meant() -> list[Node]:
    """Return what was chosen, by which the server and `gpugate doctor` see whether the configurations were changed since."""
    users = Value("webhooks.karpenterUsers")
    return [
        If(
            users,
            Each(("user",), users, text("--karpenter-user=", Variable("user"))),
            "--karpenter-user=none",
        ),
        *(If(no(Value(f"webhooks.{group.value}.enabled")), f"--without={group.value}") for group in RiskGroup),
        Each(("name",), Value("webhooks.onlyNamespaces"), text("--only-namespace=", Variable("name"))),
    ]


def _number(path: str) -> Node:
    return call("toString", call("int", Value(path)))


def _probe(path: str) -> dict[str, Node]:
    return {"httpGet": {"path": path, "port": "health"}}


def _spread(key: str) -> Node:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector()},
        "matchLabelKeys": ["pod-template-hash"],
    }
