"""An audit in the Prometheus text format 0.0.4, for the textfile collector or the Pushgateway.

The number of series is bounded: no label contains the name of a workload, and the last namespaces and pools share a series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.tally import actions, grouped, idle_or_parked, suppressed
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport
    from gpugate.webhook.audit.tally import Group

    Sample = tuple[Mapping[str, str], float]

MOST_NAMESPACES: Final = 200
MOST_POOLS: Final = 200
OTHER: Final = "(other)"
_IDLE: Final = "Cost of idle and parked GPUs in USD per hour"


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write an audit."""
    return "".join(f"{line}\n" for line in (*_lines(report), *_budget(presentation)))


def _budget(presentation: Presentation) -> Iterator[str]:
    if presentation.idle_budget is not None:
        yield from _family(
            "idle_budget_usd_per_hour",
            "Budget for idle and parked GPUs in USD per hour",
            [({}, presentation.idle_budget)],
        )


def _lines(report: AuditReport) -> Iterator[str]:
    yield from _family("time_seconds", "Unix time of the audit", [({}, report.time.timestamp())])
    yield from _family(
        "coverage_ratio", "Evaluated share of what should be evaluated, from 0 to 1", [({}, report.coverage)]
    )
    yield from _family("not_evaluated", "Kinds and objects that were not evaluated", [({}, len(report.not_evaluated))])
    objects = [({"action": action.value}, count) for action, count in actions(report).items()]
    yield from _family("objects", "Objects by what the webhook would do if they were created now", objects)
    yield from _family(
        "policy_objects", "Objects with findings, by policy", _samples("policy", grouped(report, "policy"))
    )
    namespaces = _samples("namespace", grouped(report, "namespace"), MOST_NAMESPACES)
    yield from _family("namespace_objects", "Objects with findings, by namespace", namespaces)
    exempt = sum(1 for _ in suppressed(report))
    yield from _family("exempt_findings", "Findings with an exemption", [({}, exempt)])
    over = [({"state": "expired"}, len(report.expired)), ({"state": "unused"}, len(report.unused))]
    yield from _family("exemptions", "Exemptions that have expired or match no finding", over)
    yield from _cost(report)


def _cost(report: AuditReport) -> Iterator[str]:
    cost = report.cost
    if cost is None:
        return
    states = [
        ({"state": "at_risk"}, cost.at_risk),
        ({"state": "allocated"}, cost.allocated),
        ({"state": "idle"}, cost.idle),
    ]
    yield from _family("gpu_usd_per_hour", "Cost of GPUs in USD per hour", states)
    yield from _family("gpu_spend_usd_per_hour", "Cost of all GPUs in USD per hour", [({}, cost.spend)])
    if cost.used:
        used = [({"use": part.use.value}, part.usd_per_hour or 0.0) for part in cost.used]
        yield from _family("gpu_use_usd_per_hour", "Cost of allocated GPUs in USD per hour, by use", used)
        yield from _family("idle_or_parked_usd_per_hour", _IDLE, [({}, idle_or_parked(cost.used))])
    for by in ("team", "namespace"):
        spending: dict[str, float] = {}
        idling: dict[str, float] = {}
        for index, spend in enumerate(entry for entry in cost.spending if entry.by == by):
            group = spend.name if index < MOST_NAMESPACES else OTHER
            spending[group] = spending.get(group, 0.0) + (spend.usd_per_hour or 0.0)
            idling[group] = idling.get(group, 0.0) + idle_or_parked(spend.used)
        samples = [({by: group}, usd) for group, usd in spending.items()]
        yield from _family(f"{by}_gpu_usd_per_hour", f"Cost of allocated GPUs in USD per hour, by {by}", samples)
        if cost.used:
            samples = [({by: group}, usd) for group, usd in idling.items()]
            yield from _family(f"{by}_idle_or_parked_usd_per_hour", f"{_IDLE}, by {by}", samples)
    yield from _family("unpriced_gpus", "GPUs without a price", [({}, cost.unpriced_gpus)])
    yield from _family("unbounded", "NodePools and autoscalers without a limit on GPUs", [({}, len(cost.unbounded))])
    yield from _family(
        "wasted_gpus", "Idle GPUs that no Pod can use", [({}, sum(wasted.gpus for wasted in cost.wasted))]
    )
    pools: dict[tuple[str, str, str], float] = {}
    for index, pool in enumerate(cost.pools):
        name = (pool.node_pool, pool.instance_type) if index < MOST_POOLS else (OTHER, OTHER)
        for state, count in (("allocated", pool.allocated), ("idle", pool.gpus - pool.allocated)):
            pools[*name, state] = pools.get((*name, state), 0.0) + count
    labels = ("node_pool", "instance_type", "state")
    by_pool = [(dict(zip(labels, name, strict=True)), count) for name, count in pools.items()]
    yield from _family("pool_gpus", "GPUs by NodePool and instance type", by_pool)


def _samples(label: str, groups: Sequence[Group], most: int | None = None) -> list[Sample]:
    """Return a sample for each group and action; the groups after the first `most` share one."""
    totals: dict[tuple[str, Action], int] = {}
    for index, group in enumerate(groups):
        name = group.name if most is None or index < most else OTHER
        for action, count in group.objects.items():
            if action is not Action.ALLOW:
                totals[name, action] = totals.get((name, action), 0) + count
    return [({label: name, "action": action.value}, count) for (name, action), count in totals.items()]


def _family(name: str, meaning: str, samples: Iterable[Sample]) -> Iterator[str]:
    family = f"gpugate_audit_{name}"
    yield f"# HELP {family} {meaning}."
    yield f"# TYPE {family} gauge"
    for labels, value in samples:
        pairs = ",".join(f'{label}="{_value(text)}"' for label, text in labels.items())
        yield f"{family}{f'{{{pairs}}}' if pairs else ''} {value:.15g}"


def _value(text: str) -> str:
    return plain(text).replace("\\", "\\\\").replace('"', '\\"')
