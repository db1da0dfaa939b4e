"""The CronJob that audits the cluster, who it is to the API server, and what it may do there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import PolicyConfig
from gpugate.webhook.generate.chart.access import cluster_role
from gpugate.webhook.generate.chart.deployment import container_settings, pod_settings
from gpugate.webhook.generate.chart.names import FULL_NAME, metadata, selector
from gpugate.webhook.generate.chart.terms import Each, If, Node, Value, Variable, both, call, no, text
from gpugate.webhook.generate.entries import whole_catalogue
from gpugate.webhook.generate.rbac import audit_rules, report_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME: Final = text(FULL_NAME, "-audit")
_ENABLED: Final = Value("audit.enabled")
_WRITES: Final = Value("audit.writeReports")
_VOLUME: Final = Value("audit.metricsVolume")
_POLICY: Final = "/etc/gpugate/policy"
_METRICS: Final = "/metrics"


def audit() -> Iterator[Node]:
    """Yield everything; its rights to read and to write are in two roles."""
    account: Node = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(_NAME)}
    yield If(_ENABLED, account)
    makes_rights = both(_ENABLED, Value("rbac.create"))
    for each in cluster_role(_NAME, [*audit_rules(whole_catalogue(PolicyConfig()))], _NAME):
        yield If(makes_rights, each)
    for each in cluster_role(text(FULL_NAME, "-audit-reports"), [*report_rules()], _NAME):
        yield If(both(makes_rights, _WRITES), each)
    yield If(_ENABLED, _cron_job())


def _cron_job() -> Node:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(_NAME),
        "spec": {
            "schedule": Value("audit.schedule"),
            # Two at once would write the same reports.
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "metadata": {"labels": selector("audit")},
                "spec": {
                    "backoffLimit": 1,
                    "activeDeadlineSeconds": Value("audit.deadlineSeconds"),
                    "template": {"metadata": {"labels": selector("audit")}, "spec": _pod()},
                },
            },
        },
    }


def _pod() -> Node:
    return {
        "serviceAccountName": _NAME,
        "restartPolicy": "Never",
        **pod_settings(),
        "containers": [
            {
                "name": "gpugate",
                **container_settings(),
                "resources": Value("audit.resources"),
                "command": ["gpugate"],
                "args": _arguments(),
                "volumeMounts": [
                    {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 -- of the container's own
                    {"name": "policy", "mountPath": _POLICY, "readOnly": True},
                    If(_VOLUME, {"name": "metrics", "mountPath": _METRICS}),
                ],
            }
        ],
        "volumes": [
            {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
            {"name": "policy", "configMap": {"name": text(FULL_NAME, "-policy")}},
            If(_VOLUME, call("set", call("deepCopy", _VOLUME), "name", "metrics")),
        ],
    }


def _arguments() -> Node:
    return [
        "audit",
        f"--policy-file={_POLICY}/policy.yaml",
        text("--as-mode=", Value("audit.asMode")),
        If(_WRITES, "--write-reports"),
        If(_VOLUME, f"--output=prometheus={_METRICS}/gpugate.prom"),
        If(no(_VOLUME), "--output=prometheus"),
        "--summary-log",
        Each(("argument",), Value("audit.arguments"), Variable("argument")),
    ]
