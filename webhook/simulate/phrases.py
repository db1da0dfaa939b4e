"""The sentences of a simulation, which its formats share; none of them is escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit import words as say

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from gpugate.webhook.audit.model import NotEvaluated
    from gpugate.webhook.report.located import ObjectName
    from gpugate.webhook.simulate.model import (
        Change,
        Coverage,
        DisruptionWindow,
        NodeRisk,
        PoolRisk,
        ProposedExemption,
        ScaleUp,
        ScheduledRuns,
        Simulation,
    )

LOST: Final = "Pods that would not come back if their node is removed"
UNPLANNED: Final = "failures, Spot interruptions and the expiry of nodes do not wait for a disruption window"
_NAMED: Final = 3


def runs_title(simulation: Simulation) -> str:
    """Return the title of the scheduled runs."""
    return f"Scheduled runs in the next {days(simulation.days)} that would be denied"


def days(count: int) -> str:
    """Return a number of days."""
    return f"{count} {'day' if count == 1 else 'days'}"


SCALE_UPS: Final = "Scale-ups that would be denied"
EXEMPTIONS: Final = "Proposed exemptions"


def headline(simulation: Simulation) -> str:
    """Return the result in one sentence."""
    denied, allowed = simulation.denied, simulation.newly_allowed
    others = len(simulation.changes) - len(simulation.newly_denied) - len(allowed)
    gpus = f" ({amount(denied.gpus, denied.usd_per_hour)})" if denied.gpus else ""
    parts = [
        f"{say.plural(denied.owners, 'owner')} newly denied{gpus}",
        *([f"{say.plural(len(allowed), 'owner')} no longer denied"] if allowed else []),
        *([f"{say.plural(others, 'owner')} with other changes"] if others else []),
    ]
    return ", ".join(parts)


def amount(gpus: float, usd_per_hour: float | None) -> str:
    """Return GPUs with their cost, if it is known."""
    cost = f", ${say.money(usd_per_hour)} per hour" if usd_per_hour is not None else ""
    return f"{say.number(gpus)} {'GPU' if gpus == 1 else 'GPUs'}{cost}"


def senders(people: int, controllers: int) -> str:
    """Return who sent requests."""
    parts = [
        *([f"{people:,} by people"] if people else []),
        *([f"{controllers:,} by controllers"] if controllers else []),
    ]
    return ", ".join(parts)


def requests(simulation: Simulation) -> str:
    """Return the requests of the newly denied owners; empty without any."""
    denied = simulation.denied
    total = denied.people + denied.controllers
    if not total:
        return ""
    daily = f", {_rate(denied.per_day)} a day" if denied.per_day is not None else ""
    return f"{say.plural(total, 'request')} ({senders(denied.people, denied.controllers)}){daily}"


def _rate(per_day: float) -> str:
    return f"{per_day:,.0f}" if per_day >= 10 else f"{per_day:.2g}"


def transition(change: Change) -> str:
    """Return what becomes of an owner."""
    if change.newly_denied:
        return f"newly denied ({change.current} -> deny)"
    if change.newly_allowed:
        return f"no longer denied (deny -> {change.candidate})"
    if change.current is change.candidate:
        return f"{change.candidate}, as before"
    return f"{change.current} -> {change.candidate}"


def details(change: Change) -> Iterator[str]:
    """Yield the requests and the Pods of an owner."""
    sent = change.requests
    if sent.total:
        when = f", {_minute(sent.first)} to {_minute(sent.last)}" if sent.first and sent.last else ""
        by = senders(sent.people, sent.controllers)
        yield f"{say.plural(sent.total, 'request')} ({by}; {', '.join(sent.operations)}{when})"
    if change.pods:
        gpus = f", {amount(change.gpus, change.usd_per_hour)}" if change.gpus else ""
        yield f"{say.plural(change.pods, 'Pod')}{gpus}"


def basis(coverage: Coverage) -> Iterator[str]:
    """Yield what the simulation is based on."""
    if coverage.requests:
        span = (
            f" from {_minute(coverage.first)} to {_minute(coverage.last)}" if coverage.first and coverage.last else ""
        )
        yield f"{coverage.evaluated:,} of {coverage.requests:,} recorded requests{span}"
    if coverage.stored:
        yield f"{coverage.stored:,} stored objects"
    for kind in coverage.workloads if coverage.requests else ():
        done = "ran" if kind.kind == "CronJob" else "created Pods"
        yield f"{kind.recorded:,} of {say.plural(kind.total, kind.kind)} {done} in this time"


def unseen(coverage: Coverage) -> Iterator[str]:
    """Yield the workloads that the recorded requests do not contain, by kind."""
    for kind in coverage.workloads if coverage.requests else ():
        if kind.missing:
            further = kind.total - kind.recorded - len(kind.missing)
            yield f"{kind.kind} {', '.join(kind.missing)}{f' and {further:,} more' if further else ''}"


def pool(risk: PoolRisk, simulation: Simulation) -> str:
    """Return the Pods of a NodePool that would not come back, and when Karpenter may disrupt its nodes."""
    name = f"NodePool {risk.node_pool}" if risk.node_pool else "nodes without a NodePool"
    gpus = f", {amount(risk.gpus, risk.usd_per_hour)}" if risk.gpus else ""
    opens = f"; {window(risk.window, simulation)}" if risk.window else ""
    return f"{name}: {say.plural(risk.pods, 'Pod')} on {say.plural(risk.nodes, 'node')}{gpus}{opens}"


def window(opening: DisruptionWindow, simulation: Simulation) -> str:
    """Return when the budgets of a NodePool next allow a disruption."""
    if opening.opens is None:
        return f"its budgets allow Karpenter no disruption in the next {days(simulation.days)}"
    nodes = "any number of nodes" if opening.nodes is None else f"{say.plural(opening.nodes, 'node')} at once"
    if simulation.time and opening.opens <= simulation.time:
        opens = f"now, until {_minute(opening.closes)} UTC" if opening.closes else "now"
    else:
        opens = f"from {_minute(opening.opens)}{f' to {_minute(opening.closes)}' if opening.closes else ''} UTC{'' if opening.closes else ' on'}"
    return f"its budgets allow Karpenter to disrupt {nodes} {opens}"


def node(risk: NodeRisk) -> str:
    """Return the Pods of a node that would not come back."""
    gpus = f", {amount(risk.gpus, risk.usd_per_hour)}" if risk.gpus else ""
    in_pool = f" (NodePool {risk.node_pool})" if risk.node_pool else ""
    return f"{risk.node}{in_pool}: {say.plural(risk.pods, 'Pod')} of {names(risk.owners)}{gpus}"


def names(owners: tuple[ObjectName, ...]) -> str:
    """Return the first owners of many."""
    more = f" and {len(owners) - _NAMED} more" if len(owners) > _NAMED else ""
    return f"{', '.join(map(str, owners[:_NAMED]))}{more}"


def runs(entry: ScheduledRuns) -> str:
    """Return the next runs of an owner."""
    return f"{entry.object}: {runs_when(entry)}{f', {amount(entry.gpus, None)} each' if entry.gpus else ''}"


def runs_when(entry: ScheduledRuns) -> str:
    """Return how often and when an owner runs next."""
    more = f" and {len(entry.schedules) - _NAMED} more" if len(entry.schedules) > _NAMED else ""
    schedule = f'"{", ".join(entry.schedules[:_NAMED])}"{more}{f" in {entry.time_zone}" if entry.time_zone else ""}'
    if entry.suspended:
        return f"suspended ({schedule})"
    if entry.runs is None:
        return f"at unknown times, because schedule {schedule} cannot be read"
    if entry.first is None:
        return f"no run in this time ({schedule})"
    return f"{say.plural(entry.runs, 'run')}, the first at {_minute(entry.first)} UTC ({schedule})"


def scale_up(entry: ScaleUp) -> str:
    """Return how far an owner may scale."""
    by = "" if entry.scaler == entry.object else f" by {entry.scaler}"
    if entry.most_pods is None:
        return f"{entry.object}{by}: {say.plural(entry.pods, 'Pod')} now, without a maximum"
    gpus = f" with {amount(entry.most_gpus, None)}" if entry.most_gpus else ""
    return f"{entry.object}{by}: {say.plural(entry.pods, 'Pod')} now, at most {entry.most_pods:,}{gpus}"


def exemption(entry: ProposedExemption) -> str:
    """Return an exemption in one line."""
    where = f" in {', '.join(entry.namespaces)}" if entry.namespaces else ""
    owner = entry.owner or "none yet: set --exemption-owner"
    return (
        f"{', '.join(entry.policies)} for {', '.join(entry.kinds)} {', '.join(entry.names)}{where}, "
        f"until {entry.expires}, owner {owner}"
    )


def gap(entry: NotEvaluated) -> str:
    """Return what could not be read."""
    left = f" ({entry.objects:,} objects are missing)" if entry.objects else ""
    return f"{entry.what}: {entry.reason}{left}"


def _minute(time: dt.datetime | None) -> str:
    return f"{time:%Y-%m-%d %H:%M}" if time else ""
