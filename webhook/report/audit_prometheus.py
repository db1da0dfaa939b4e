"""An audit as Prometheus' text format 0.0.4, for a textfile collector or a Pushgateway.

No series names a workload, and namespaces and pools beyond a number share one series, so that their number stays bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.report.audit_tally import actions, grouped, suppressed
from gpugate.webhook.report.audited import Action
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.webhook.report.audit_presentation import Presentation
    from gpugate.webhook.report.audit_tally import Group
    from gpugate.webhook.report.audited import AuditReport

    Sample = tuple[Mapping[str, str], float]

MOST_NAMESPACES: Final = 200
MOST_POOLS: Final = 200
OTHER: Final = "(other)"


def render(report: AuditReport, presentation: Presentation) -> str:  # noqa: ARG001 -- every format is called alike
    """Write an audit."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: AuditReport) -> Iterator[str]:
    yield from _family("time_seconds", "When the audit was made, in Unix time", [({}, report.time.timestamp())])
    yield from _family("coverage_ratio", "Share of what should be evaluated that was", [({}, report.coverage)])
    yield from _family("not_evaluated", "What could not be looked at", [({}, len(report.not_evaluated))])
    objects = [({"action": action.value}, count) for action, count in actions(report).items()]
    yield from _family("objects", "Objects by what would become of them if they were created now", objects)
    yield from _family(
        "policy_objects", "Objects in which a policy found something", _samples("policy", grouped(report, "policy"))
    )
    namespaces = _samples("namespace", grouped(report, "namespace"), MOST_NAMESPACES)
    yield from _family("namespace_objects", "Objects with findings, by namespace", namespaces)
    exempt = sum(1 for _ in suppressed(report))
    yield from _family("exempt_findings", "Findings that an exemption lets pass", [({}, exempt)])
    over = [({"state": "expired"}, len(report.expired)), ({"state": "unused"}, len(report.unused))]
    yield from _family("exemptions", "Exemptions that are over, or match nothing", over)
    yield from _cost(report)


def _cost(report: AuditReport) -> Iterator[str]:
    cost = report.cost
    if cost is None:
        return
    states = [({"state": "at_risk"}, cost.at_risk), ({"state": "held"}, cost.held), ({"state": "idle"}, cost.idle)]
    yield from _family("gpu_usd_per_hour", "GPU money in dollars an hour", states)
    yield from _family("unpriced_gpus", "GPUs without a known price", [({}, cost.unpriced_gpus)])
    yield from _family("unbounded", "Pools and scalers that can grow without a limit", [({}, len(cost.unbounded))])
    yield from _family("wasted_gpus", "GPUs nobody can use", [({}, sum(each.gpus for each in cost.wasted))])
    pools: dict[tuple[str, str, str], float] = {}
    for index, pool in enumerate(cost.pools):
        name = (pool.node_pool, pool.instance_type) if index < MOST_POOLS else (OTHER, OTHER)
        for state, count in (("held", pool.held), ("idle", pool.gpus - pool.held)):
            pools[*name, state] = pools.get((*name, state), 0.0) + count
    labels = ("node_pool", "instance_type", "state")
    by_pool = [(dict(zip(labels, name, strict=True)), count) for name, count in pools.items()]
    yield from _family("pool_gpus", "GPUs of a NodePool", by_pool)


def _samples(label: str, groups: Sequence[Group], most: int | None = None) -> list[Sample]:
    """Return a sample for each group and action; groups beyond `most` are one."""
    found: dict[tuple[str, Action], int] = {}
    for index, group in enumerate(groups):
        name = group.name if most is None or index < most else OTHER
        for action, count in group.objects.items():
            if action is not Action.COMPLY:
                found[name, action] = found.get((name, action), 0) + count
    return [({label: name, "action": action.value}, count) for (name, action), count in found.items()]


def _family(name: str, meaning: str, samples: Iterable[Sample]) -> Iterator[str]:
    family = f"gpugate_audit_{name}"
    yield f"# HELP {family} {meaning}."
    yield f"# TYPE {family} gauge"
    for labels, value in samples:
        shown = ",".join(f'{label}="{_value(text)}"' for label, text in labels.items())
        yield f"{family}{f'{{{shown}}}' if shown else ''} {value:.15g}"


def _value(text: str) -> str:
    return plain(text).replace("\\", "\\\\").replace('"', '\\"')
