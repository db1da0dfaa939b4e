"""The figures of a simulation: what is newly denied, by policy and in all, and how far these figures can be relied on."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from msgspec import structs

from gpugate.webhook.audit.words import percent
from gpugate.webhook.simulate.model import Confidence, PolicyTotals, Totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.webhook.simulate.model import Change, Coverage, Simulation

_HIGH: Final = 0
_MEDIUM: Final = 1
_LOW: Final = 2
_WEEK: Final = 7.0
_HOUR: Final = 1 / 24
# Shares of the recorded requests that were not evaluated.
_SOME: Final = 0.05
_MANY: Final = 0.25
_NAMED: Final = 5


def summarized(simulation: Simulation, *, has_live_data: bool) -> Simulation:
    """Return the simulation with its figures.

    Args:
        simulation: its changes and its coverage.
        has_live_data: whether policies had the data of a cluster, so that none was left out for want of a dump.
    """
    days = simulation.coverage.days
    return structs.replace(
        simulation,
        denied=_totals(simulation.newly_denied, days),
        policies=tuple(_by_policy(simulation.changes, days)),
        confidence=_confidence(simulation, has_live_data=has_live_data),
    )


def _totals(changes: Iterable[Change], days: float) -> Totals:
    """Add up owners. A log and a dump may both show one: the log its requests, the dump its GPUs."""
    changes = tuple(changes)
    people = sum(change.requests.people for change in changes)
    controllers = sum(change.requests.controllers for change in changes)
    holding = [change for change in changes if change.gpus]
    prices = [change.usd_per_hour for change in holding if change.usd_per_hour is not None]
    return Totals(
        owners=len({change.object for change in changes}),
        people=people,
        controllers=controllers,
        per_day=(people + controllers) / days if days >= _HOUR else None,
        gpus=sum(change.gpus for change in holding),
        usd_per_hour=sum(prices) if prices and len(prices) == len(holding) else None,
    )


def _by_policy(changes: Iterable[Change], days: float) -> Iterator[PolicyTotals]:
    denied: defaultdict[str, list[Change]] = defaultdict(list)
    allowed: defaultdict[str, set[object]] = defaultdict(set)
    others: defaultdict[str, set[object]] = defaultdict(set)
    for change in changes:
        for policy in change.policies:
            # An owner that another policy denies anyway is not newly denied.
            if policy.newly_denied and change.newly_denied:
                denied[policy.policy].append(change)
            elif policy.newly_allowed and change.newly_allowed:
                allowed[policy.policy].add(change.object)
            else:
                others[policy.policy].add(change.object)
    totals = (
        PolicyTotals(name, _totals(denied[name], days), len(allowed[name]), len(others[name]))
        for name in {**denied, **allowed, **others}
    )
    yield from sorted(totals, key=lambda entry: (-entry.denied.owners, -entry.allowed, -entry.others, entry.policy))


def _confidence(simulation: Simulation, *, has_live_data: bool) -> Confidence:
    doubts = list(_doubts(simulation, simulation.coverage, has_live_data=has_live_data))
    level = max((level for level, _ in doubts), default=_HIGH)
    return Confidence(("high", "medium", "low")[level], tuple(reason for _, reason in doubts))


def _doubts(simulation: Simulation, coverage: Coverage, *, has_live_data: bool) -> Iterator[tuple[int, str]]:
    """Yield what lowers the confidence: the highest level that is left, and the reason."""
    if not coverage.requests:
        yield _MEDIUM, "no recorded requests: what is created and removed again between two dumps is unknown"
    elif coverage.days < 1:
        hours = coverage.days * 24
        span = f"{hours:.1f} hours" if hours >= 1 else "less than an hour"
        yield _LOW, f"the recorded requests are those of {span}"
    elif coverage.days < _WEEK:
        yield _MEDIUM, f"the recorded requests are those of {coverage.days:.1f} days, less than a week"
    missed = sum(coverage.not_evaluated.values())
    if missed > _SOME * coverage.requests:
        level = _LOW if missed > _MANY * coverage.requests else _MEDIUM
        yield level, f"{percent(missed / coverage.requests)} of the recorded requests were not evaluated"
    if not coverage.stored and not has_live_data:
        yield _LOW, "no cluster data, which some policies need: add a dump with --from, or --cluster"
    if simulation.gaps:
        names = ", ".join(gap.what for gap in simulation.gaps[:_NAMED])
        more = f" and {len(simulation.gaps) - _NAMED} more" if len(simulation.gaps) > _NAMED else ""
        yield _MEDIUM, f"not all was read: {names}{more}"
