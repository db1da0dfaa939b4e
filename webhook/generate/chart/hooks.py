"""Jobs that Helm runs around installs and uninstalls, and its test; nothing of them is applied without Helm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.generate.chart.access import cluster_role, role
from gpugate.webhook.generate.chart.deployment import container_settings, pod_settings
from gpugate.webhook.generate.chart.failure_policies import FAILS
from gpugate.webhook.generate.chart.names import FULL_NAME, NAMESPACE, metadata, selector
from gpugate.webhook.generate.chart.terms import If, Node, Value, both, call, text

if TYPE_CHECKING:
    from collections.abc import Iterator

# When Helm runs something, and when it takes it away again: also when it failed, as an uninstall does not know of it.
_HOOK: Final = "helm.sh/hook"
_ORDER: Final = "helm.sh/hook-weight"
_REMOVAL: Final = {"helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded,hook-failed"}
# Helm shows what a Job said that failed (v3.18 and v4).
_LOG: Final = {"helm.sh/hook-output-log-policy": "hook-failed"}
_AFTER: Final = "post-install,post-upgrade"
_BEFORE_REMOVAL: Final = "pre-delete"
_WAITS: Final = Value("hooks.wait.enabled")
# Helm 3 takes webhook configurations away last, when nobody answers any more. Where nothing waits that does no harm, and a
# Job that cannot start, as without its image, would keep the release from being uninstalled.
_CLEANS_UP: Final = both(Value("hooks.cleanup.enabled"), FAILS)
# Helm waits for a Job, by default for five minutes; a Pod that cannot start must not hold it up for ever. A node for the first
# Pods may take two minutes to come, and an uninstall should not take longer than it must.
_SECONDS_TO_START: Final = {_AFTER: 180, _BEFORE_REMOVAL: 60}
_CONFIGURATIONS: Final[list[Node]] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]


def waiting() -> Iterator[Node]:
    """Yield the Job that waits until the API server reaches the webhook, the test that looks once, and their rights."""
    name = text(FULL_NAME, "-wait")
    moment: Node = {_HOOK: f"{_AFTER},test", _ORDER: "-5", **_REMOVAL}
    for each in _account(name, moment):
        yield If(_WAITS, each)
    rules: list[Node] = [_configurations("get")]
    for each in cluster_role(name, rules, name, annotations=moment):
        yield If(_WAITS, each)
    # A ConfigMap is asked about, as a dry run; the others say why nobody answers.
    inside: list[Node] = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["services"], "resourceNames": [FULL_NAME], "verbs": ["get"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list"]},
    ]
    for each in role(name, inside, name, annotations=moment):
        yield If(_WAITS, each)
    seconds = call("toString", call("int", Value("hooks.wait.timeoutSeconds")))
    yield If(_WAITS, _job(name, _AFTER, ["webhook", "wait", text("--timeout=", seconds, "s")]))
    test_name = text(FULL_NAME, "-test")
    yield If(
        _WAITS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata(test_name, annotations={_HOOK: "test", **_REMOVAL, **_LOG}),
            "spec": _pod(name, ["webhook", "wait", "--timeout=10s"]),
        },
    )


def cleanup() -> Iterator[Node]:
    """Yield the Job that takes the configurations away first, and its rights."""
    name = text(FULL_NAME, "-cleanup")
    moment: Node = {_HOOK: _BEFORE_REMOVAL, _ORDER: "-5", **_REMOVAL}
    for each in _account(name, moment):
        yield If(_CLEANS_UP, each)
    for each in cluster_role(name, [_configurations("get", "delete")], name, annotations=moment):
        yield If(_CLEANS_UP, each)
    yield If(_CLEANS_UP, _job(name, _BEFORE_REMOVAL, ["webhook", "uninstall", "--best-effort"]))


def _configurations(*verbs: Node) -> Node:
    return {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": _CONFIGURATIONS,
        "resourceNames": [FULL_NAME],
        "verbs": list(verbs),
    }


def _account(name: Node, moment: Node) -> Iterator[Node]:
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name, annotations=moment)}


def _job(name: Node, moment: str, arguments: list[Node]) -> Node:
    labels: Node = {"labels": selector("hook")}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(name, annotations={_HOOK: moment, **_REMOVAL, **_LOG}),
        "spec": {
            "backoffLimit": 2,
            "activeDeadlineSeconds": call("add", Value("hooks.wait.timeoutSeconds"), _SECONDS_TO_START[moment]),
            "template": {"metadata": labels, "spec": _pod(name, arguments)},
        },
    }


def _pod(account: Node, arguments: list[Node]) -> Node:
    where: list[Node] = [text("--namespace=", NAMESPACE), text("--name=", FULL_NAME)]
    return {
        "serviceAccountName": account,
        "restartPolicy": "Never",
        **pod_settings(),
        "containers": [
            {
                "name": "gpugate",
                **container_settings(),
                "command": ["gpugate"],
                "args": [*arguments, *where],
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 -- of the container's own
            }
        ],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
