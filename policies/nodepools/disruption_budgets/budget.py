"""One disruption budget of a NodePool: what it says, and what is wrong with it.

Source: Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (Budget), `pkg/apis/crds/karpenter.sh_nodepools.yaml`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools.disruption_budgets import cron
from gpugate.policies.sdk import durations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.nodepools.disruption_budgets.cron import Schedule
    from gpugate.policies.sdk.field import Field

REASONS: Final = ("Underutilized", "Empty", "Drifted")

_NODES = re.compile(r"(100|[0-9]{1,2})%|[0-9]+")
_DURATION = re.compile(r"(?=[0-9])(?:([0-9]{1,18})h)?(?:([0-9]{1,18})m)?(?:0s)?")
_MOST_MINUTES = (2**63 - 1) // durations.MINUTE  # that Go's nanoseconds can count
_MOST_NODES = 2**31 - 1
_DEFAULT_NODES = "10%"  # of the CRD


class BudgetError(ValueError):
    """Nobody can tell what this budget allows."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a budget is refused, by the API server or by Karpenter: at which field, and what to write instead."""

    field: Field
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget that can be read.

    Attributes:
        field: where it stands.
        nodes: how many nodes may be disrupted at once: `2`, or `10%` of the pool.
        reasons: the reasons it holds for.
        schedule: when it starts to be active; None: it is active always.
        minutes: how long it stays active after each start.
    """

    field: Field
    nodes: str
    reasons: frozenset[str]
    schedule: Schedule | None
    minutes: int

    def allowed(self, pool_nodes: int) -> int:
        """Return how many nodes it lets Karpenter disrupt at once, of so many; a part of a node counts as one."""
        percent = self.nodes.removesuffix("%")
        return int(percent) if percent == self.nodes else -(-int(percent) * pool_nodes // 100)


def read(field: Field) -> Budget:
    """Read a budget.

    Raises:
        BudgetError: the budget has a fault.
    """
    if next(faults(field), None):
        raise BudgetError
    # An empty list of reasons holds for none, unlike one that is left out.
    reasons = frozenset(field["reasons"].texts if field["reasons"] else REASONS)
    schedule = cron.parse(field["schedule"].text) if field["schedule"] else None
    minutes = (_minutes(field["duration"].text) or 0) if schedule else 0
    return Budget(field, field["nodes"].text or _DEFAULT_NODES, reasons, schedule, minutes)


def faults(field: Field) -> Iterator[Fault]:
    """Yield what is wrong with a budget."""
    yield from _nodes(field["nodes"])
    known = ", ".join(REASONS)
    for reason in field["reasons"]:
        if reason.value not in REASONS:
            yield Fault(reason, f'there is no reason "{reason.text[:20]}"', f"write one of {known}")
    yield from _schedule(field)


def _nodes(nodes: Field) -> Iterator[Fault]:
    if not nodes:
        return
    if not isinstance(nodes.value, str):
        yield Fault(nodes, "nodes is no string, so the API server refuses the pool", 'put it in quotes: nodes: "0"')
    elif not _NODES.fullmatch(nodes.text):
        yield Fault(nodes, f'nodes is "{nodes.text[:20]}"', 'write a whole number such as "1", or "0%" to "100%"')
    elif len(nodes.text.lstrip("0")) > 10 or int(nodes.text.removesuffix("%")) > _MOST_NODES:
        yield Fault(nodes, "nodes is more than 2147483647, which Karpenter cannot count to", "leave the budget out")


def _schedule(field: Field) -> Iterator[Fault]:
    schedule, duration = field["schedule"], field["duration"]
    if bool(schedule) != bool(duration):
        given, missing = (schedule, duration) if schedule else (duration, schedule)
        names = [str(each.path[-1]) for each in (given, missing)]
        yield Fault(missing, f"has a {names[0]} without a {names[1]}", f"write both, or neither: {_EXAMPLE}")
    if schedule:
        try:
            cron.parse(schedule.text)
        except cron.ScheduleError as error:
            # The CRD looks for five words, or for a shorthand.
            stored = len(schedule.text.split()) >= 5
            result = "Karpenter then disrupts nothing in this pool" if stored else "the API server refuses it"
            message = f"schedule {error}; {result}"
            yield Fault(schedule, message, f"write minute, hour, day, month and day of week in UTC: {_EXAMPLE}")
    if duration:
        minutes = _minutes(duration.text)
        if minutes is None or minutes > _MOST_MINUTES:
            wrong = (
                "is not of whole hours and minutes"
                if minutes is None
                else "is longer than 292 years, the longest that can be read"
            )
            yield Fault(duration, f'duration "{duration.text[:20]}" {wrong}', "write hours and minutes, such as 8h30m")


def _minutes(duration: str) -> int | None:
    """Return how long a duration of whole hours and minutes is; None when it is none of those."""
    found = _DURATION.fullmatch(duration)
    return int(found[1] or 0) * 60 + int(found[2] or 0) if found and (found[1] or found[2]) else None


_EXAMPLE = 'schedule: "0 9 * * MON-FRI" and duration: 8h'
