"""What the disruption budgets of a NodePool allow over time, as Karpenter works it out.

Time is a set of quarters of an hour, one bit for each: of a week, or of a leap year where a schedule names days of a
month.

Source: Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (GetAllowedDisruptionsByReason, IsActive).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools.disruption_budgets.budget import BudgetError, read
from gpugate.policies.nodepools.disruption_budgets.window import QUARTERS_PER_DAY, Stretch, Window, window

if TYPE_CHECKING:
    from gpugate.policies.nodepools.disruption_budgets.budget import Budget
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

UNBOUNDED: Final = 2**31 - 1
MOST_BUDGETS: Final = 50

_WEEK: Final = Stretch(dt.date(2028, 1, 2), 7)  # from a Sunday
_LEAP_YEAR: Final = Stretch(dt.date(2028, 1, 1), 366)
_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Timeline:
    """The budgets of a pool over the days that are simulated; all times are UTC."""

    budgets: tuple[Budget, ...]

    @cached_property
    def stretch(self) -> Stretch:
        """The days simulated."""
        weekly = all(budget.schedule is None or budget.schedule.is_weekly for budget in self.budgets)
        return _WEEK if weekly else _LEAP_YEAR

    def window(self, budget: Budget) -> Window:
        """Return when one of the budgets is active."""
        return self._windows[id(budget)]

    @cached_property
    def _windows(self) -> dict[int, Window]:
        always = Window(self.stretch.quarters, always=True)
        return {
            id(budget): window(budget.schedule, budget.minutes, self.stretch) if budget.schedule else always
            for budget in self.budgets
        }

    def allowed(self, reason: str, pool_nodes: int) -> dict[int, int]:
        """Return, by how many nodes Karpenter may disrupt at once for a reason, when that is so; the least first."""
        left = self.stretch.quarters
        found: dict[int, int] = {}
        for budget in sorted(self.budgets, key=lambda budget: budget.allowed(pool_nodes)):
            if left and reason in budget.reasons:
                times = left & self.window(budget).quarters
                if times:
                    most = budget.allowed(pool_nodes)
                    found[most] = found.get(most, 0) | times
                    left &= ~times
        if left:
            found[UNBOUNDED] = left
        return found

    def most_hours_of_a_day(self, times: int) -> float:
        """Return how many hours of some day lie in a set of quarters of an hour, on the day where they are most."""
        size = QUARTERS_PER_DAY // 8
        bits = times.to_bytes(self.stretch.days * size, "little")
        days = (bits[start : start + size] for start in range(0, len(bits), size))
        return max(int.from_bytes(day, "little").bit_count() for day in days) / 4

    def first(self, times: int) -> str:
        """Return the first of a set of times, for people: `Mon 09:15 UTC`, or `01-31 09:15 UTC` in a year."""
        days, quarter = divmod((times & -times).bit_length() - 1, QUARTERS_PER_DAY)
        date = self.stretch.start + dt.timedelta(days=days)
        name = _WEEKDAYS[date.weekday()] if self.stretch is _WEEK else f"{date:%m-%d}"
        return f"{name} {quarter // 4:02}:{quarter % 4 * 15:02} UTC"


def timeline(pool: Field, ctx: AnyContext) -> Timeline | None:  # noqa: ARG001 -- what `Context.derived` calls
    """Return what a pool's budgets allow over time; None where one of them has a fault, which stops all disruption.

    More budgets than the CRD allows are not followed either.
    """
    budgets = list(pool["spec", "disruption", "budgets"])
    if len(budgets) > MOST_BUDGETS:
        return None
    try:
        return Timeline(tuple(read(field) for field in budgets))
    except BudgetError:
        return None
