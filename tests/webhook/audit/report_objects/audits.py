"""Audits of a few objects, as tests of reports need them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.audit.model import Action, Audited, AuditReport, Cluster, Finding, NotEvaluated
from gpugate.webhook.report.located import ObjectName

BEGIN = dt.datetime(2026, 8, 24, 10, tzinfo=dt.UTC)


def finding(policy: str = "pods/wildcard-toleration", action: Action = Action.DENY, **others: Any) -> Finding:
    given = {"path": "spec.tolerations", "message": "it tolerates everything", **others}
    return Finding(policy, stance=Stance.ENFORCE, action=action, **given)


def deployment(name: str, *findings: Finding, namespace: str = "ml", **others: Any) -> Audited:
    return Audited(
        ObjectName("apps/v1", "Deployment", namespace, name), f"uid-{name}", findings=tuple(findings), **others
    )


def node_pool(name: str, *findings: Finding) -> Audited:
    return Audited(ObjectName("karpenter.sh/v1", "NodePool", "", name), f"uid-{name}", findings=tuple(findings))


def audit(*audited: Audited, minutes: int = 0, missing: str = "", reason: str = "forbidden") -> AuditReport:
    left_out = (NotEvaluated(missing, reason),) if missing else ()
    time = BEGIN + dt.timedelta(minutes=minutes)
    return AuditReport(Cluster("test"), time, "abc", "1.36", audited, {}, left_out, 0.5 if missing else 1.0)
