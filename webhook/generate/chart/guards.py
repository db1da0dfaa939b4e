"""What is refused before anything reaches a cluster: values that fit their types and would do harm together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpugate.webhook.generate.chart.failure_policies import FAILS
from gpugate.webhook.generate.chart.names import (
    EXCLUDED_NAMESPACES,
    IS_CERT_MANAGER,
    IS_PROVIDED,
    JUDGED_NAMESPACES,
    NAMESPACE,
    REPLICAS,
)
from gpugate.webhook.generate.chart.terms import Node, Release, Term, Value, both, call, either, no, same
from gpugate.webhook.generate.entries import RiskGroup


@dataclass(frozen=True, slots=True)
class Guard:
    """Values that are refused: when, and why."""

    refused: Node
    reason: str


_OF_THE_CLUSTER: Final[list[Node]] = ["kube-system", "kube-public", "kube-node-lease"]
_GROUPS: Final = [f"webhooks.{group.value}" for group in RiskGroup]
_LEAST: Final = Value("podDisruptionBudget.minAvailable")
_MOST: Final = Value("podDisruptionBudget.maxUnavailable")
_BUNDLE: Final = Value("certificates.caBundle")
_CLIENTS: Final = Value("clientAuthentication.caBundle")
_ACCOUNT: Final = "serviceAccount"
# MiB that two workers and the certificate keeper were seen to use, without load.
_LEAST_MEMORY: Final = 160
# Bytes, as `k8s.io/apimachinery` pkg/api/resource suffix.go has them; of larger units one is always enough.
_UNITS: Final[dict[str, Node]] = {
    "m": "0.001",
    "": 1,
    "k": 1000,
    "Ki": 1024,
    "M": 1000_000,
    "Mi": 1024**2,
    "G": 1000_000_000,
    "Gi": 1024**3,
}


def _is_little(quantity: Term) -> Node:
    """Return whether a quantity of memory is less than what is needed at least."""
    written = call("toString", quantity)
    number = call("regexFind", "^[0-9.]+(e[+]?[0-9]+)?", written)
    unit = call("trimPrefix", number, written)
    size = call("int", call("mulf", number, call("get", _UNITS, unit)))
    return both(number, call("hasKey", _UNITS, unit), call("lt", size, _LEAST_MEMORY * 1024**2))


GUARDS: Final = (
    Guard(
        call("has", NAMESPACE, _OF_THE_CLUSTER),
        "the release is in a namespace that the cluster itself lives in, which is never judged: "
        "install it in one of its own, --namespace gpugate --create-namespace",
    ),
    Guard(
        both(FAILS, call("lt", call("int", REPLICAS), 2)),
        "failurePolicy: Fail with one replica: whenever its Pod or node is replaced, requests are refused; "
        "set replicaCount to 2 or more",
    ),
    Guard(
        both(FAILS, Release("IsInstall"), no(Value("webhooks.failOnInstall"))),
        "failurePolicy: Fail on install: until the first Pod is ready, requests would be refused; install with Ignore, "
        "then `helm upgrade` with Fail. Where Helm does not know what is installed (Argo CD, `helm template`), set "
        "webhooks.failOnInstall: true once the Pods are ready",
    ),
    Guard(
        no(call("has", "kube-system", EXCLUDED_NAMESPACES)),
        "policy.excluded_namespaces lacks kube-system: what a cluster starts with would be judged; add it",
    ),
    Guard(
        both(Value("webhooks.onlyNamespaces"), no(JUDGED_NAMESPACES)),
        "webhooks.onlyNamespaces names excluded namespaces only: no Pod would be judged; name others",
    ),
    Guard(
        no(either(*(Value(f"{group}.enabled") for group in _GROUPS))),
        "every group of webhooks is turned off: nothing would be judged; turn one on, or uninstall the release",
    ),
    Guard(
        both(Value("podDisruptionBudget.enabled"), call("ge", call("int", _LEAST), call("int", REPLICAS))),
        "podDisruptionBudget.minAvailable is not less than the number of replicas: no node under a Pod could be drained",
    ),
    Guard(
        both(
            FAILS,
            Value("podDisruptionBudget.enabled"),
            no(_LEAST),
            call("ge", call("int", _MOST), call("int", REPLICAS)),
        ),
        "podDisruptionBudget.maxUnavailable lets every replica go at once, and with failurePolicy: Fail requests are refused "
        "meanwhile; make it less than the number of replicas",
    ),
    Guard(
        both(
            Value("autoscaling.enabled"),
            call("lt", call("int", Value("autoscaling.maxReplicas")), call("int", Value("autoscaling.minReplicas"))),
        ),
        "autoscaling.maxReplicas is less than minReplicas",
    ),
    Guard(
        both(no(IS_PROVIDED), either(Value("certificates.caBundle"), Value("certificates.secretName"))),
        "certificates.caBundle and secretName are for mode: provided; in the others the authority rotates, and a fixed one "
        "would end the trust in it",
    ),
    Guard(
        both(IS_PROVIDED, no(both(Value("certificates.caBundle"), Value("certificates.secretName")))),
        "certificates.mode: provided needs secretName (a Secret with tls.crt and tls.key) and caBundle (PEM)",
    ),
    Guard(
        both(IS_PROVIDED, no(call("contains", "-----BEGIN CERTIFICATE-----", _BUNDLE))),
        "certificates.caBundle holds no certificate: write PEM as it is, not encoded a second time",
    ),
    Guard(
        call("contains", "PRIVATE KEY-----", _BUNDLE),
        "certificates.caBundle holds a private key, which everybody could read in the webhook configurations: "
        "leave certificates only, and replace that key",
    ),
    Guard(
        both(_CLIENTS, Value("clientAuthentication.configMapName")),
        "clientAuthentication.caBundle and configMapName are both given: only one of them can be used; remove the other",
    ),
    Guard(
        both(_CLIENTS, no(call("contains", "-----BEGIN CERTIFICATE-----", _CLIENTS))),
        "clientAuthentication.caBundle holds no certificate: write PEM as it is, not encoded a second time",
    ),
    Guard(
        call("contains", "PRIVATE KEY-----", _CLIENTS),
        "clientAuthentication.caBundle holds a private key, which would be readable in a ConfigMap: leave certificates only, "
        "and replace that key",
    ),
    Guard(
        both(Value("rbac.create"), no(either(Value(f"{_ACCOUNT}.create"), Value(f"{_ACCOUNT}.name")))),
        "serviceAccount.create: false without a name: the rights, among them to the keys of the authorities, would go to "
        "every Pod of the namespace that names no ServiceAccount; name one",
    ),
    Guard(
        both(IS_CERT_MANAGER, Value("webhooks.url")),
        "certificates.mode: certManager asks for a certificate of the Service's names, so API servers that come by "
        "webhooks.url would refuse it; take mode self, or provided with a certificate for that host",
    ),
    Guard(
        _is_little(call("dig", "limits", "memory", "", Value("pods.resources"))),
        f"pods.resources.limits.memory is less than {_LEAST_MEMORY}Mi, which two workers use without any load",
    ),
    Guard(
        same(call("int", Value("server.port")), call("int", Value("server.healthPort"))),
        "server.port and server.healthPort are the same",
    ),
)
