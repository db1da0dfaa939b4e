"""An audit in the Prometheus text format 0.0.4, for the textfile collector or the Pushgateway.

The number of series is bounded: no label contains the name of a workload, and the last namespaces and pools share a series.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.webhook.audit.model import SCHEMA, Action
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
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")
_IDLE: Final = "Cost of idle and parked GPUs in USD per hour"


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write an audit."""
    cluster = report.cluster
    # Without a configuration, the Prometheus that scrapes the file knows the cluster better.
    common = {"cluster": cluster.id, "region": cluster.region} if cluster.is_configured else {}
    families = (*_families(report), *_budget(presentation))
    return "".join(f"{line}\n" for family in families for line in family.lines(common))


class _Family(NamedTuple):
    """The samples of a metric."""

    name: str
    meaning: str
    samples: Iterable[Sample]

    def lines(self, common: Mapping[str, str]) -> Iterator[str]:
        """Yield the lines; `common` are labels of all samples, without those that are empty."""
        family = f"gpugate_audit_{self.name}"
        yield f"# HELP {family} {self.meaning}."
        yield f"# TYPE {family} gauge"
        for labels, value in self.samples:
            known = {**{name: text for name, text in common.items() if text}, **labels}
            pairs = ",".join(f'{label}="{_value(text)}"' for label, text in known.items())
            yield f"{family}{f'{{{pairs}}}' if pairs else ''} {value:.15g}"


def _info(report: AuditReport) -> Iterator[tuple[str, str]]:
    cluster = report.cluster
    yield "version", report.gpugate
    yield "schema", SCHEMA
    yield "run_id", report.run_id
    yield "policy_file", report.generation
    yield "cluster_uid", cluster.uid
    # As kube-state-metrics names labels of objects.
    for key, value in cluster.labels.items():
        yield f"label_{_NOT_IN_A_NAME.sub('_', key)}", value


def _budget(presentation: Presentation) -> Iterator[_Family]:
    if presentation.idle_budget is not None:
        yield _Family(
            "idle_budget_usd_per_hour",
            "Budget for idle and parked GPUs in USD per hour",
            [({}, presentation.idle_budget)],
        )


def _families(report: AuditReport) -> Iterator[_Family]:
    yield _Family("info", "The audit, its cluster and its run; always 1", [(dict(_info(report)), 1)])
    yield _Family("time_seconds", "Unix time of the audit", [({}, report.time.timestamp())])
    yield _Family("coverage_ratio", "Evaluated share of what should be evaluated, from 0 to 1", [({}, report.coverage)])
    yield _Family("not_evaluated", "Kinds and objects that were not evaluated", [({}, len(report.not_evaluated))])
    objects = [({"action": action.value}, count) for action, count in actions(report).items()]
    yield _Family("objects", "Objects by what the webhook would do if they were created now", objects)
    yield _Family("policy_objects", "Objects with findings, by policy", _samples("policy", grouped(report, "policy")))
    namespaces = _samples("namespace", grouped(report, "namespace"), MOST_NAMESPACES)
    yield _Family("namespace_objects", "Objects with findings, by namespace", namespaces)
    exempt = sum(1 for _ in suppressed(report))
    yield _Family("exempt_findings", "Findings with an exemption", [({}, exempt)])
    over = [({"state": "expired"}, len(report.expired)), ({"state": "unused"}, len(report.unused))]
    yield _Family("exemptions", "Exemptions that have expired or match no finding", over)
    yield from _cost(report)


def _cost(report: AuditReport) -> Iterator[_Family]:
    cost = report.cost
    if cost is None:
        return
    states = [
        ({"state": "at_risk"}, cost.at_risk),
        ({"state": "allocated"}, cost.allocated),
        ({"state": "idle"}, cost.idle),
    ]
    yield _Family("gpu_usd_per_hour", "Cost of GPUs in USD per hour", states)
    yield _Family("gpu_spend_usd_per_hour", "Cost of all GPUs in USD per hour", [({}, cost.spend)])
    if cost.used:
        used = [({"use": part.use.value}, part.usd_per_hour or 0.0) for part in cost.used]
        yield _Family("gpu_use_usd_per_hour", "Cost of allocated GPUs in USD per hour, by use", used)
        yield _Family("idle_or_parked_usd_per_hour", _IDLE, [({}, idle_or_parked(cost.used))])
    for by in ("team", "namespace"):
        spending: dict[str, float] = {}
        idling: dict[str, float] = {}
        for index, spend in enumerate(entry for entry in cost.spending if entry.by == by):
            group = spend.name if index < MOST_NAMESPACES else OTHER
            spending[group] = spending.get(group, 0.0) + (spend.usd_per_hour or 0.0)
            idling[group] = idling.get(group, 0.0) + idle_or_parked(spend.used)
        samples = [({by: group}, usd) for group, usd in spending.items()]
        yield _Family(f"{by}_gpu_usd_per_hour", f"Cost of allocated GPUs in USD per hour, by {by}", samples)
        if cost.used:
            samples = [({by: group}, usd) for group, usd in idling.items()]
            yield _Family(f"{by}_idle_or_parked_usd_per_hour", f"{_IDLE}, by {by}", samples)
    yield _Family("unpriced_gpus", "GPUs without a price", [({}, cost.unpriced_gpus)])
    yield _Family("unbounded", "NodePools and autoscalers without a limit on GPUs", [({}, len(cost.unbounded))])
    yield _Family("wasted_gpus", "Idle GPUs that no Pod can use", [({}, sum(wasted.gpus for wasted in cost.wasted))])
    pools: dict[tuple[str, str, str], float] = {}
    for index, pool in enumerate(cost.pools):
        name = (pool.node_pool, pool.instance_type) if index < MOST_POOLS else (OTHER, OTHER)
        for state, count in (("allocated", pool.allocated), ("idle", pool.gpus - pool.allocated)):
            pools[*name, state] = pools.get((*name, state), 0.0) + count
    labels = ("node_pool", "instance_type", "state")
    by_pool = [(dict(zip(labels, name, strict=True)), count) for name, count in pools.items()]
    yield _Family("pool_gpus", "GPUs by NodePool and instance type", by_pool)


def _samples(label: str, groups: Sequence[Group], most: int | None = None) -> list[Sample]:
    """Return a sample for each group and action; the groups after the first `most` share one."""
    totals: dict[tuple[str, Action], int] = {}
    for index, group in enumerate(groups):
        name = group.name if most is None or index < most else OTHER
        for action, count in group.objects.items():
            if action is not Action.ALLOW:
                totals[name, action] = totals.get((name, action), 0) + count
    return [({label: name, "action": action.value}, count) for (name, action), count in totals.items()]


def _value(text: str) -> str:
    return plain(text).replace("\\", "\\\\").replace('"', '\\"')
