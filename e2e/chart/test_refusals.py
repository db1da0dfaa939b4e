"""Test that the chart rejects harmful values before an install, with the reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from chart.conftest import CHART

if TYPE_CHECKING:
    from pathlib import Path

    from chart.conftest import Helm

FAIL = ("--set", "webhooks.pods.failurePolicy=Fail")
UPGRADE = "--is-upgrade"

INVALID = {
    "an unknown key": ("replicas=2", "replicas"),
    "an unknown key in a section": ("image.tagg=1", "tagg"),
    "no replica": ("replicaCount=0", "replicaCount"),
    "replicas as a string": ("replicaCount=three", "replicaCount"),
    "replicas removed": ("replicaCount=null", "replicaCount"),
    "a section removed": ("webhooks=null", "webhooks"),
    "a timeout of zero": ("webhooks.validateTimeoutSeconds=0", "validateTimeoutSeconds"),
    "a timeout over the maximum": ("webhooks.mutateTimeoutSeconds=31", "mutateTimeoutSeconds"),
    "a failure policy in lower case": ("webhooks.pods.failurePolicy=fail", "failurePolicy"),
    "a failure policy for a group that is always Ignore": ("webhooks.nodeclaims.failurePolicy=Fail", "nodeclaims"),
    "port 0": ("server.port=0", "port"),
    "no tag": ("image.tag=", "tag"),
    "a name with non-ASCII letters": ("fullnameOverride=wächter", "fullnameOverride"),
    "a name of 64 characters": (f"fullnameOverride={'a' * 64}", "fullnameOverride"),
    "an unknown mode": ("policy.mode=Audit", "mode"),
    "a mode that is a boolean": ("policy.mode=true", "mode"),
    "an unknown mode of the shadow": ("policy.shadow.mode=Audit", "shadow"),
    "a fraction of more than all reviews": ("record.fraction=1.5", "fraction"),
    "a size without a unit": ("record.maxSize=256", "maxSize"),
    "a shadow of the shadow": ("policy.shadow.shadow.mode=audit", "shadow"),
    "an unknown policy": ("policy.policies.pods/no-such.mode=warn", "pods/no-such"),
    "an unknown parameter": ("policy.policies.nodepools/narrow-spot.params.fewest=2", "fewest"),
    "a quote in a resource": ("policy.platform.accelerators.resources={a'b}", "resources"),
    "a URL without TLS": ("webhooks.url=http://gpugate.example.com", "url"),
    "a negative number of Pods": ("podDisruptionBudget.minAvailable=-1", "minAvailable"),
    "a pattern instead of a name": ("policy.excluded_namespaces={kube-system,gpu-*}", "excluded_namespaces"),
    "a network without a prefix length": ("networkPolicy.apiServerCidrs={10.0.0.1}", "apiServerCidrs"),
    "a switch removed": ("webhooks.pods.enabled=null", "enabled"),
    "a quote in a taint": ("policy.platform.taints.a[0].key=a'b", "key"),
    "a bracket in a resource": ("policy.platform.accelerators.resources={a)||(}", "resources"),
    "a number as a label": ("podLabels.team=7", "podLabels/team"),
    "a line break in a label": ("commonLabels.team=a\n", "commonLabels/team"),
    "a space in a label of Pods": ("podLabels.team=a b", "podLabels/team"),
    "a number as a common annotation": ("commonAnnotations.team=7", "commonAnnotations/team"),
    "a pull secret without its key": ("imagePullSecrets={registry}", "imagePullSecrets/0"),
    "a number as a variable": ("extraEnv[0].name=A,extraEnv[0].value=7", "extraEnv/0/value"),
    "a flag as a map": ("extraArgs.trace=true", "extraArgs"),
    "a name of a cluster with a space": ("cluster.name=a b", "cluster/name"),
    "a region with a slash": ("cluster.region=a/b", "cluster/region"),
    "a number as a label of the cluster": ("cluster.labels.tier=1", "cluster/labels/tier"),
    "an unknown format of tables": ("audit.tables.format=csv", "audit/tables/format"),
    "a path as the URL of a bucket": ("audit.tables.url=/a", "audit/tables/url"),
    "a space in an image": ("audit.image=a b", "audit/image"),
    "a mount at a relative path": (
        "extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=a",
        "extraVolumeMounts/0/mountPath",
    ),
    "a volume without a name": ("extraVolumes[0].emptyDir.medium=Memory", "extraVolumes/0"),
    "a user as a string": ("podSecurityContext.runAsUser=root", "podSecurityContext/runAsUser"),
    "a switch as a string": ("securityContext.readOnlyRootFilesystem=yes", "securityContext/readOnlyRootFilesystem"),
    "one constraint instead of a list": ("topologySpreadConstraints.maxSkew=1", "topologySpreadConstraints"),
    "a node label as a boolean": ("nodeSelector.gpu=false", "nodeSelector"),
    "a toleration as a string": ("tolerations={NoSchedule}", "tolerations/0"),
    "affinity as a list": ("affinity={a}", "affinity"),
    "a priority as a number": ("priorityClassName=7", "priorityClassName"),
    "a name with a dot": ("nameOverride=a.b", "nameOverride"),
    "an annotation of the ServiceAccount as a number": (
        "serviceAccount.annotations.role=7",
        "serviceAccount/annotations/role",
    ),
    "an interval without a unit": ("metrics.serviceMonitor.interval=30", "metrics/serviceMonitor/interval"),
    "an address that is not a URL": ("metrics.prometheusRule.runbookUrl=docs", "metrics/prometheusRule/runbookUrl"),
    "a number as a label of alerts": ("metrics.prometheusRule.alertLabels.team=7", "alertLabels/team"),
    "a line break in a user": ("webhooks.karpenterUsers={system:serviceaccount:a:b\n}", "karpenterUsers"),
}


@pytest.mark.parametrize(("value", "expected"), INVALID.values(), ids=INVALID)
def test_the_schema_rejects_invalid_values(helm: Helm, value: str, expected: str) -> None:
    flag = "--set-string" if "replicaCount=three" in value else "--set"
    refusal = helm.refusal(flag, value)

    assert "schema" in refusal
    assert expected in refusal


@pytest.mark.parametrize("value", ["global.imageRegistry=x", "enabled=false"])
def test_the_schema_accepts_values_of_parent_charts(helm: Helm, value: str) -> None:
    assert helm.template("--set", value).returncode == 0


HARMFUL = {
    "Fail on install": (FAIL, "failurePolicy: Fail on install"),
    "Fail with one replica": ((*FAIL, UPGRADE, "--set", "replicaCount=1"), "failurePolicy: Fail with one replica"),
    "Fail with one autoscaled replica": (
        (*FAIL, UPGRADE, "--set", "autoscaling.enabled=true,autoscaling.minReplicas=1"),
        "failurePolicy: Fail with one replica",
    ),
    "kube-system not excluded": (
        ("--set", "policy.excluded_namespaces={karpenter}"),
        "policy.excluded_namespaces does not contain kube-system",
    ),
    "no namespace evaluated": (
        ("--set", "webhooks.onlyNamespaces={kube-system,guard}"),
        "webhooks.onlyNamespaces contains only excluded namespaces",
    ),
    "policies beside a bundle": (
        ("--set", f"policy.bundle.reference=ghcr.io/acme/p@sha256:{'a' * 64}", "--set", "policy.target.karpenter=1.9"),
        "policy.bundle contains the policy file, and policy.target is set too",
    ),
    "a mode beside a bundle": (
        ("--set", f"policy.bundle.reference=ghcr.io/acme/p@sha256:{'a' * 64}", "--set", "policy.mode=enforce"),
        "policy.bundle contains the policy file, and policy.mode is set too",
    ),
    "two keys of a bundle": (
        (
            "--set",
            f"policy.bundle.reference=ghcr.io/acme/p@sha256:{'a' * 64}",
            "--set",
            "policy.bundle.keySecret=k,policy.bundle.key=-----BEGIN PUBLIC KEY-----",
        ),
        "policy.bundle.key and policy.bundle.keySecret are both set",
    ),
    "two authorities of a bundle": (
        (
            "--set",
            f"policy.bundle.reference=ghcr.io/acme/p@sha256:{'a' * 64}",
            "--set",
            "policy.bundle.caConfigMap=k,policy.bundle.ca=-----BEGIN CERTIFICATE-----",
        ),
        "policy.bundle.ca and policy.bundle.caConfigMap are both set",
    ),
    "an authority of a bundle with a private key": (
        (
            "--set",
            f"policy.bundle.reference=ghcr.io/acme/p@sha256:{'a' * 64}",
            "--set",
            "policy.bundle.ca=-----BEGIN CERTIFICATE----- -----BEGIN PRIVATE KEY-----",
        ),
        "policy.bundle.ca contains a private key",
    ),
    "an authority without a bundle": (
        ("--set", "policy.bundle.caConfigMap=k"),
        "policy.bundle has no reference",
    ),
    "a key without a bundle": (
        ("--set", "policy.bundle.keySecret=k"),
        "policy.bundle has no reference",
    ),
    "policies without an organisation": (
        ("--set", "policies.configMap=own"),
        "policies.configMap is set without policies.organisation",
    ),
    "no group enabled": (
        (
            "--set",
            ",".join(
                f"webhooks.{group}.enabled=false"
                for group in (
                    "pools",
                    "nodeclaims",
                    "pods",
                    "workloads",
                    "scaling",
                    "claims",
                    "disruption",
                    "quotas",
                    "namespaces",
                )
            ),
        ),
        "every group of webhooks is disabled",
    ),
    "two sources of client CAs": (
        ("--set", "clientAuthentication.caBundle=-----BEGIN CERTIFICATE-----,clientAuthentication.configMapName=ca"),
        "clientAuthentication.caBundle and configMapName are both set",
    ),
    "client CAs without a certificate": (
        ("--set", "clientAuthentication.caBundle=LS0tLS1C"),
        "clientAuthentication.caBundle contains no certificate",
    ),
    "a budget that allows no eviction": (
        ("--set", "podDisruptionBudget.minAvailable=2"),
        "podDisruptionBudget.minAvailable is not less",
    ),
    "an inverted range": (
        ("--set", "autoscaling.enabled=true,autoscaling.maxReplicas=1"),
        "autoscaling.maxReplicas is less than autoscaling.minReplicas",
    ),
    "a fixed bundle with a rotating CA": (
        ("--set", "certificates.caBundle=PEM"),
        "certificates.caBundle and secretName require",
    ),
    "a provided certificate without a Secret": (
        ("--set", "certificates.mode=provided"),
        "certificates.mode: provided requires",
    ),
    "a URL that the certificate does not cover": (
        ("--set", "certificates.mode=certManager,webhooks.url=https://192.0.2.1:8443"),
        "certificates.mode: certManager requests a certificate for the names of the Service",
    ),
    "too little memory": (("--set", "resources.limits.memory=64Mi"), "resources.limits.memory is less than"),
    "too little memory in another unit": (
        ("--set", "resources.limits.memory=0.1Gi"),
        "resources.limits.memory is less than",
    ),
    "too little memory in bytes": (
        ("--set", "resources.limits.memory=67108864"),
        "resources.limits.memory is less than",
    ),
    "too little memory in M": (
        ("--set", "resources.limits.memory=100M"),
        "resources.limits.memory is less than",
    ),
    "too little memory with an exponent": (
        ("--set-string", "resources.limits.memory=1e8"),
        "resources.limits.memory is less than",
    ),
    "slightly too little memory": (
        ("--set", "resources.limits.memory=159Mi"),
        "resources.limits.memory is less",
    ),
    "client CAs with a private key": (
        ("--set", "clientAuthentication.caBundle=-----BEGIN CERTIFICATE----- -----BEGIN PRIVATE KEY-----"),
        "clientAuthentication.caBundle contains a private key",
    ),
    "permissions for every Pod of the namespace": (
        ("--set", "serviceAccount.create=false"),
        "serviceAccount.create: false without serviceAccount.name",
    ),
    "a bundle in base64": (
        ("--set", "certificates.mode=provided,certificates.secretName=tls,certificates.caBundle=TFMw"),
        "certificates.caBundle contains no certificate",
    ),
    "a bundle with a private key": (
        (
            "--set",
            (
                "certificates.mode=provided,certificates.secretName=tls,"
                "certificates.caBundle=-----BEGIN CERTIFICATE----- -----BEGIN PRIVATE KEY-----"
            ),
        ),
        "certificates.caBundle contains a private key",
    ),
    "a budget that allows the eviction of all replicas": (
        (*FAIL, UPGRADE, "--set", "podDisruptionBudget.maxUnavailable=2"),
        "podDisruptionBudget.maxUnavailable allows the eviction of all replicas",
    ),
    "a flag of the chart": (
        ("--set", "extraArgs={--port=9443}"),
        "--port, which the chart sets: remove it, and use server.port",
    ),
    "a flag of the chart without a value": (
        ("--set", "extraArgs={--policy-file,/etc/other.yaml}"),
        "extraArgs contains --policy-file, which the chart sets: remove it, and use policy",
    ),
    "the flag of the shadow policy file": (
        ("--set", "extraArgs={--shadow-policy-file=/etc/other.yaml}"),
        "--shadow-policy-file, which the chart sets: remove it, and use policy.shadow",
    ),
    "the flag of the record": (
        ("--set", "extraArgs={--record=/other}"),
        "--record, which the chart sets: remove it, and use record.volume",
    ),
    "an abbreviated flag of the chart": (
        ("--set", "extraArgs={--pol=/a}"),
        "extraArgs contains --pol, which the chart sets",
    ),
    "a short flag of the chart": (("--set", "extraArgs={-p/a}"), "extraArgs contains -p/a, which the chart sets"),
    "a flag of the audit": (
        ("--set", "audit.extraArgs={--as-mode=warn}"),
        "audit.extraArgs contains --as-mode, which the chart sets: remove it, and use audit.asMode",
    ),
    "a budget without the use of GPUs": (
        ("--set", "audit.idleBudget=5"),
        "audit.idleBudget needs the use of GPUs: set audit.prometheus.url",
    ),
    "a cluster as a flag": (
        ("--set", "extraArgs={--cluster-name=a}"),
        "extraArgs contains --cluster-name, which the chart sets: remove it, and use cluster.name",
    ),
    "a cluster of the audit as a flag": (
        ("--set", "audit.extraArgs={--cluster-label=a=b}"),
        "audit.extraArgs contains --cluster-label, which the chart sets: remove it, and use cluster.labels",
    ),
    "policies of a cluster that is unknown": (
        ("--set", "policy.clusters[0].match.env=prod,policy.clusters[0].mode=audit"),
        "policy.clusters depends on the cluster: set cluster.name",
    ),
    "tables in two places": (
        ("--set", "audit.image=a,audit.tables.url=s3://a,audit.tables.volume.emptyDir.medium=Memory"),
        "audit.tables.volume and audit.tables.url are both set",
    ),
    "tables in a bucket by the default image": (
        ("--set", "audit.tables.url=s3://a/b"),
        "audit.tables: the default image cannot write Parquet or to a bucket: set audit.image",
    ),
    "Parquet by the default image": (
        ("--set", "audit.tables.format=parquet,audit.tables.volume.emptyDir.medium=Memory"),
        "audit.tables: the default image cannot write Parquet or to a bucket: set audit.image",
    ),
    "credentials in the URL of a bucket": (
        ("--set", "audit.image=a,audit.tables.url=s3://key:secret@bucket/a"),
        "audit.tables.url contains credentials",
    ),
    "credentials without a bucket": (
        ("--set", "audit.tables.secretName=a"),
        "audit.tables.secretName is for a bucket: set audit.tables.url",
    ),
    "tables twice": (
        ("--set", "audit.tables.volume.emptyDir.medium=Memory,audit.extraArgs={-o,--output=parquet=/a}"),
        "audit.extraArgs contains --output, and audit.tables is set",
    ),
    "a Prometheus of the audit as a flag": (
        ("--set", "audit.extraArgs={--prometheus=http://a}"),
        "audit.extraArgs contains --prometheus, which the chart sets: remove it, and use audit.prometheus.url",
    ),
    "a user without a password": (
        ("--set", "audit.prometheus.user=a,audit.prometheus.secret.name=b"),
        "audit.prometheus.user and audit.prometheus.secret.passwordKey need each other: set both",
    ),
    "a key without a Secret": (
        ("--set", "audit.prometheus.secret.tokenKey=token"),
        "audit.prometheus.secret has keys but no name: set audit.prometheus.secret.name",
    ),
    "a variable for a flag of the chart": (
        ("--set", "extraEnv[0].name=GPUGATE_TLS_CERT,extraEnv[0].value=/a"),
        "extraEnv contains GPUGATE_TLS_CERT, which stands for a flag that the chart sets",
    ),
    "a volume of the chart": (
        ("--set", "extraVolumes[0].name=tmp"),
        "extraVolumes contains tmp, a volume of the chart",
    ),
    "a mount over files of the chart": (
        ("--set", "extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=/etc/gpugate"),
        "extraVolumeMounts contains /etc/gpugate, which would hide files of the chart",
    ),
    "the user root": (("--set", "podSecurityContext.runAsUser=0"), "podSecurityContext.runAsUser: 0"),
    "the user root in the container": (("--set", "securityContext.runAsUser=0"), "securityContext.runAsUser: 0"),
    "perhaps the user root": (
        ("--set", "podSecurityContext.runAsNonRoot=null"),
        "podSecurityContext.runAsNonRoot is not true",
    ),
    "perhaps the user root in the container": (
        ("--set", "securityContext.runAsNonRoot=false"),
        "podSecurityContext.runAsNonRoot is not true",
    ),
    "a writable root file system": (
        ("--set", "securityContext.readOnlyRootFilesystem=false"),
        "securityContext.readOnlyRootFilesystem is not true",
    ),
    "privilege escalation": (
        ("--set", "securityContext.allowPrivilegeEscalation=null"),
        "securityContext.allowPrivilegeEscalation is not false",
    ),
    "a privileged container": (("--set", "securityContext.privileged=true"), "securityContext.privileged is true"),
    "an added capability": (("--set", "securityContext.capabilities.add={NET_ADMIN}"), "securityContext.capabilities"),
    "kept capabilities": (("--set", "securityContext.capabilities.drop={NET_RAW}"), "securityContext.capabilities"),
    "every system call": (
        ("--set", "podSecurityContext.seccompProfile.type=Unconfined"),
        "podSecurityContext.seccompProfile.type: Unconfined",
    ),
    "a timeout longer than the interval": (
        ("--set", "metrics.serviceMonitor.interval=1m,metrics.serviceMonitor.scrapeTimeout=1m1ms"),
        "metrics.serviceMonitor.scrapeTimeout is longer than interval",
    ),
    "one port for both servers": (("--set", "server.port=8081"), "server.port and server.healthPort are equal"),
}


@pytest.mark.parametrize(("flags", "reason"), HARMFUL.values(), ids=HARMFUL)
def test_harmful_values_are_rejected(helm: Helm, flags: tuple[str, ...], reason: str) -> None:
    assert reason in helm.refusal(*flags)


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kube-node-lease"])
def test_a_release_in_a_system_namespace_is_rejected(helm: Helm, namespace: str) -> None:
    ran = helm.ran("template", "gate", CHART, "--namespace", namespace)

    assert ran.returncode != 0
    assert "the release is in a system namespace" in ran.stderr


def test_fail_is_accepted_for_an_upgrade(helm: Helm) -> None:
    assert helm.template(*FAIL, UPGRADE).returncode == 0


def memory(limit: str | int) -> dict[str, Any]:
    return {"resources": {"limits": {"memory": limit}}}


PROVIDED = {"mode": "provided", "secretName": "tls", "caBundle": "# comment\n-----BEGIN CERTIFICATE-----\nAAAA\n"}
HARMLESS: dict[str, dict[str, Any]] = {
    "just enough memory": memory("176Mi"),
    "memory in Gi": memory("0.5Gi"),
    "memory in bytes": memory(536_870_912),
    "memory in Ti": memory("1Ti"),
    "memory in E": memory("1E"),
    "no limit": {"resources": {"limits": None}},
    "neither ServiceAccount nor RBAC": {"serviceAccount": {"create": False}, "rbac": {"create": False}},
    "a comment in a bundle": {"certificates": PROVIDED},
    "a budget for all replicas without Fail": {"podDisruptionBudget": {"maxUnavailable": 2}},
    "a timeout as long as the interval": {"metrics": {"serviceMonitor": {"interval": "1m30s", "scrapeTimeout": "90s"}}},
    "a timeout in milliseconds": {"metrics": {"serviceMonitor": {"interval": "1s", "scrapeTimeout": "500ms"}}},
    "users of OpenShift": {"podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None}},
    "another user": {"securityContext": {"runAsUser": 1000}},
    "flags that the chart does not set": {"extraArgs": ["--max-connections=9", "--trace", "--certificate-life", "12h"]},
    "a mount elsewhere": {
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/gpugate-ca"}],
    },
    "an annotation named failurePolicy": {"webhooks": {"annotations": {"failurePolicy": "Fail"}}},
}


@pytest.mark.parametrize("values", HARMLESS.values(), ids=HARMLESS)
def test_harmless_values_are_accepted(helm: Helm, tmp_path: Path, values: dict[str, Any]) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(json.dumps(values))

    assert helm.objects("--values", file)
