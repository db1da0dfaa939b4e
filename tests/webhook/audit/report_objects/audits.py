"""Audits of a few objects, as tests of reports need them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from gpugate.webhook.audit.model import Action, Audited, AuditReport, Cluster, Finding, NotEvaluated, Summary
from gpugate.webhook.report.located import ObjectName

BEGIN = dt.datetime(2026, 8, 24, 10, tzinfo=dt.UTC)


def finding(policy: str = "pods/wildcard-toleration", action: Action = Action.DENY, **others: Any) -> Finding:
    given = {"path": "spec.tolerations", "message": "it tolerates everything", **others}
    return Finding(policy, mode="enforce", action=action, **given)


def deployment(name: str, *findings: Finding, namespace: str = "ml", **others: Any) -> Audited:
    return Audited.of(ObjectName("apps/v1", "Deployment", namespace, name), findings, uid=f"uid-{name}", **others)


def node_pool(name: str, *findings: Finding) -> Audited:
    return Audited.of(ObjectName("karpenter.sh/v1", "NodePool", "", name), findings, uid=f"uid-{name}")


def audit(*audited: Audited, minutes: int = 0, missing: str = "", reason: str = "forbidden") -> AuditReport:
    left_out = (NotEvaluated(missing, reason),) if missing else ()
    time = BEGIN + dt.timedelta(minutes=minutes)
    return AuditReport(
        "0.1.0",
        Cluster("test"),
        time,
        "abc",
        "1.36",
        0.5 if missing else 1.0,
        Summary.of(audited),
        {},
        audited,
        left_out,
    )
