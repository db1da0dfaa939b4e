"""An audit as rows of the tables: what each column of a run, a group, an object, a finding, a device and an exemption holds."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from gpugate.policies.engine import enforcement
from gpugate.webhook.audit.live import ABSENCE
from gpugate.webhook.audit.model import Action, Use, Used
from gpugate.webhook.audit.tables import MINOR, SCHEMA, TABLES
from gpugate.webhook.audit.tally import code, grouped, suppressed, usd

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.engine.config import Exemption
    from gpugate.webhook.audit.model import Audited, AuditReport, DeviceUse, Spend, Unbounded
    from gpugate.webhook.audit.tables import Row, TableName, Value
    from gpugate.webhook.report.located import ObjectName

Rows: TypeAlias = "Mapping[TableName, Sequence[Row]]"
"""Table -> its rows, each with all columns of the table in order."""
_MOST_GAPS: Final = 20
_COUNTED: Final = (Action.DENY, Action.MUTATE, Action.WARN, Action.RECORD)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a run was asked for, which its report does not say.

    Attributes:
        mode: the mode of all policies, or `as-is`.
        selection: the flags that select objects and policies.
        exemptions: those of the policy file.
        idle_budget: what idle and parked GPUs may cost in USD per hour.
    """

    mode: str = "enforce"
    selection: str = ""
    exemptions: Sequence[Exemption] = ()
    idle_budget: float | None = None


def rows_of(report: AuditReport, settings: RunSettings) -> Rows:
    """Return the rows of an audit with costs, whose cluster has an id."""
    cost = report.cost
    unbounded = {entry.object: entry for entry in cost.unbounded} if cost else {}
    tables: dict[TableName, Iterable[Row]] = {
        "money": (*_money(report), *_policies(report, unbounded)),
        "objects": (_object(report, owner, unbounded) for owner in report.audited),
        "findings": (row for owner in report.audited for row in _findings(owner)),
        "gpus": (_gpu(owner, device) for owner in report.audited for device in owner.devices),
        "exemptions": _exemptions(report, settings.exemptions),
        # Last, because a run whose row exists is complete.
        "runs": [_run(report, settings)],
    }
    run: Row = {"cluster": report.cluster.id, "run_id": report.run_id, "time": report.time.astimezone(dt.UTC)}
    return {name: [_row(name, {**run, **row}) for row in rows] for name, rows in tables.items()}


def _row(table: TableName, values: Row) -> Row:
    """Return the columns of a table in order; a number that is none, as from a metric, is unknown.

    Raises:
        KeyError: a column has no value.
    """
    return {name: _finite(values[name]) for name in TABLES[table].column_names}


def _finite(value: Value) -> Value:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _run(report: AuditReport, settings: RunSettings) -> Row:
    cluster, cost, usage = report.cluster, report.cost, report.usage
    gaps = [f"{gap.what}: {gap.reason}" for gap in report.not_evaluated if gap.reason != ABSENCE]
    return {
        "schema_name": SCHEMA,
        "schema_minor": MINOR,
        "gpugate": report.gpugate,
        "cluster_uid": cluster.uid,
        "cluster_context": cluster.name,
        "region": cluster.region,
        "labels": dict(sorted(cluster.labels.items())),
        "kubernetes": cluster.version,
        "target": report.target,
        "policy_hash": report.generation,
        "policy_mode": settings.mode,
        "selection": settings.selection,
        "coverage": report.coverage,
        "use_coverage": usage.coverage if usage else None,
        "window_seconds": usage.window_seconds if usage else None,
        "clock_ahead_seconds": None if cluster.clock_ahead_seconds is None else float(cluster.clock_ahead_seconds),
        "gaps": len(gaps),
        "gap_reasons": "\n".join(gaps[:_MOST_GAPS]),
        "objects_read": sum(report.counts.values()),
        **{action.value: getattr(report.summary, action.value) for action in Action},
        "findings": sum(len(owner.findings) for owner in report.audited),
        "exempt_findings": sum(1 for _ in suppressed(report)),
        "expired_exemptions": len(report.expired),
        "unused_exemptions": len(report.unused),
        "pending_pods": sum(group.pods for group in report.pending),
        "prices": cost.prices if cost else "",
        "gpus": sum((pool.gpus for pool in cost.pools), 0.0) if cost else None,
        "allocated_gpus": sum((entry.gpus for entry in cost.spending if entry.by == "team"), 0.0) if cost else None,
        "unpriced_gpus": cost.unpriced_gpus if cost else None,
        "wasted_gpus": sum((entry.gpus for entry in cost.wasted), 0.0) if cost else None,
        "spend_usd": cost.spend if cost else None,
        "allocated_usd": cost.allocated if cost else None,
        "unallocated_usd": cost.unallocated if cost else None,
        "at_risk_usd": cost.at_risk if cost else None,
        **_uses(cost.used if cost else (), is_known=usage is not None),
        "unbounded": len(cost.unbounded) if cost else None,
        "unbounded_unpriced": sum(entry.usd_per_hour is None for entry in cost.unbounded) if cost else None,
        "unbounded_usd": _worst(cost.unbounded) if cost else None,
        "idle_budget_usd": settings.idle_budget,
    }


def _uses(used: Iterable[Used], *, is_known: bool) -> Row:
    """Return the cost by use; 0 for a use that no GPU has, and null if no use is known or a GPU has no price."""
    costs = {part.use: part.usd_per_hour for part in used}
    return {f"{use.value.replace('-', '_')}_usd": costs.get(use, 0.0) if is_known else None for use in Use}


def _worst(unbounded: Iterable[Unbounded]) -> float | None:
    return max((entry.usd_per_hour for entry in unbounded if entry.usd_per_hour is not None), default=None)


_Group: TypeAlias = "tuple[str, str]"


def _money(report: AuditReport) -> Iterator[Row]:
    cost = report.cost
    spending: dict[_Group, Spend] = {(spend.by, spend.name): spend for spend in cost.spending} if cost else {}
    unbounded: defaultdict[_Group, list[Unbounded]] = defaultdict(list)
    for entry in cost.unbounded if cost else ():
        for group in (_group_of(entry.object), ("team", entry.team)):
            unbounded[group].append(entry)
    counts: defaultdict[_Group, Counter[Action]] = defaultdict(Counter)
    for owner in report.audited:
        if owner.action is Action.ALLOW:
            continue
        groups = {_group_of(owner.object), ("namespace", owner.object.namespace)}
        for group in groups | ({("team", owner.team)} if owner.allocated else set()):
            counts[group][owner.action] += 1
    unallocated = _unallocated(report)
    known: dict[_Group, None] = dict.fromkeys((*spending, *counts, *unbounded))
    for dimension, name in sorted(known):
        group = dimension, name
        yield {
            "dimension": dimension,
            "name": name,
            **_counts(counts[group]),
            **_spend(spending.get(group), report),
            "unallocated_usd": unallocated.get(name, 0.0) if dimension == "pool" and cost else None,
            "unbounded": len(unbounded[group]) if cost else None,
            "unbounded_usd": _worst(unbounded[group]),
        }


def _policies(report: AuditReport, unbounded: Mapping[ObjectName, Unbounded]) -> Iterator[Row]:
    """Yield the figures of each policy: those of the objects with a finding of it."""
    cost = report.cost
    by_policy: defaultdict[str, list[Audited]] = defaultdict(list)
    for owner in report.audited:
        for name in {code(finding) for finding in owner.findings}:
            by_policy[name].append(owner)
    for policy in grouped(report, "policy"):
        owners = by_policy[policy.name]
        allocated = [gpus for owner in owners for gpus in owner.allocated]
        entries = [entry for owner in owners if (entry := unbounded.get(owner.object))]
        yield {
            "dimension": "policy",
            "name": policy.name,
            **_counts(policy.objects),
            "gpus": sum((gpus.gpus for gpus in allocated), 0.0) if cost else None,
            "usd": usd(allocated) if allocated else 0.0 if cost else None,
            "at_risk_usd": (policy.usd_per_hour or 0.0) if cost else None,
            **_uses(_summed(owners), is_known=report.usage is not None),
            "unallocated_usd": None,
            "unbounded": len(entries) if cost else None,
            "unbounded_usd": _worst(entries),
        }


def _summed(owners: Iterable[Audited]) -> Iterator[Used]:
    """Yield the GPUs of several objects by use; unpriced ones are in no cost."""
    by_use: defaultdict[Use, list[Used]] = defaultdict(list)
    for owner in owners:
        for part in owner.used:
            by_use[part.use].append(part)
    for use, parts in by_use.items():
        costs = [part.usd_per_hour for part in parts if part.usd_per_hour is not None]
        yield Used(use, sum(part.gpus for part in parts), sum(costs) if costs else None)


def _group_of(name: ObjectName) -> _Group:
    return ("pool", name.name) if name.kind == "NodePool" else ("namespace", name.namespace)


def _counts(counts: Mapping[Action, int]) -> Row:
    return {action.value: counts.get(action, 0) for action in _COUNTED}


def _spend(spend: Spend | None, report: AuditReport) -> Row:
    """Return the GPUs of a group; null without costs, 0 for a group without GPUs."""
    nothing = 0.0 if report.cost else None
    return {
        "gpus": spend.gpus if spend else nothing,
        "usd": spend.usd_per_hour if spend else nothing,
        "at_risk_usd": spend.at_risk if spend else nothing,
        **_uses(spend.used if spend else (), is_known=report.usage is not None),
    }


def _unallocated(report: AuditReport) -> Mapping[str, float | None]:
    """Return NodePool -> the cost of its GPUs that no Pod holds; None if one of its nodes has no price."""
    costs: dict[str, float | None] = {}
    for pool in report.cost.pools if report.cost else ():
        free = max(0.0, pool.gpus - pool.allocated)
        price = None if pool.usd_per_hour is None or not pool.gpus else pool.usd_per_hour * free / pool.gpus
        before = costs.get(pool.node_pool, 0.0)
        costs[pool.node_pool] = None if price is None or before is None else before + price
    return costs


def _named(name: ObjectName) -> Row:
    return {"api_version": name.api_version, "kind": name.kind, "namespace": name.namespace, "name": name.name}


def _object(report: AuditReport, owner: Audited, unbounded: Mapping[ObjectName, Unbounded]) -> Row:
    dearest = max(
        owner.allocated,
        key=lambda allocated: (allocated.usd_per_hour or 0.0, allocated.gpus, allocated.model),
        default=None,
    )
    entry = unbounded.get(owner.object)
    return {
        **_named(owner.object),
        "uid": owner.uid,
        "team": owner.team,
        "action": owner.action.value,
        "findings": len(owner.findings),
        "pods": owner.pods,
        "gpus": sum((allocated.gpus for allocated in owner.allocated), 0.0) if report.cost else None,
        "gpu_model": dearest.model if dearest else "",
        "usd": usd(owner.allocated) if owner.allocated else 0.0 if report.cost else None,
        **_uses(owner.used, is_known=report.usage is not None),
        "is_unbounded": None if report.cost is None else entry is not None,
        "unbounded_usd": entry.usd_per_hour if entry else None,
    }


def _findings(owner: Audited) -> Iterator[Row]:
    for finding in owner.findings:
        dependent = finding.dependent
        yield {
            **_named(owner.object),
            "policy": code(finding),
            "policy_mode": finding.mode,
            "action": finding.action.value,
            "is_exempt": bool(finding.note) and finding.mode == "audit",
            "dependent": f"{dependent.namespace}/{dependent.name}" if dependent else "",
            "path": finding.path,
            "message": finding.message,
            "hint": finding.hint,
            "note": finding.note,
            "has_fix": finding.remedy is not None,
            "others": len(finding.related),
        }


def _gpu(owner: Audited, device: DeviceUse) -> Row:
    return {
        **_named(owner.object),
        "team": owner.team,
        "pod": device.pod,
        "node": device.node,
        "device": device.device,
        "model": device.model,
        "mig_profile": device.profile,
        "verdict": device.use.value,
        "reason": device.reason,
        "gpus": device.gpus,
        "usd": device.usd_per_hour,
        "engine_max": device.engine_max,
        "engine_mean": device.engine_mean,
        "utilization_max": device.utilization_max,
        "memory_max": device.memory_max,
        "watts": device.watts,
        "dram_mean": device.dram_mean,
        "tensor_mean": device.tensor_mean,
    }


def _exemptions(report: AuditReport, exemptions: Sequence[Exemption]) -> Iterator[Row]:
    today = report.time.astimezone(dt.UTC).date()
    for position, exemption in enumerate(exemptions):
        # The report names them as the engine does.
        is_unused = any(text in report.unused for text in enforcement.unused([exemption], today, ()))
        yield {
            "position": position,
            "policies": ", ".join(exemption.policies),
            "kinds": ", ".join(exemption.kinds),
            "namespaces": ", ".join(exemption.namespaces),
            "names": ", ".join(exemption.names),
            "owner": exemption.owner,
            "reason": exemption.reason,
            "expires": exemption.expires,
            "state": "expired" if exemption.expires < today else "unused" if is_unused else "valid",
        }
