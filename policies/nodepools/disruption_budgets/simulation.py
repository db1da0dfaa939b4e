"""What the disruption budgets of a NodePool allow over time, as Karpenter works it out.

Time is a set of minutes, one bit for each: of a week, or of a leap year where a schedule names days of a month; as many
days before it are followed too, for windows that last. Policies look at it every quarter of an hour.

Source: Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (GetAllowedDisruptionsByReason, IsActive).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools.disruption_budgets.budget import BudgetError, read
from gpugate.policies.nodepools.disruption_budgets.cron import MINUTES_PER_DAY

if TYPE_CHECKING:
    from gpugate.policies.nodepools.disruption_budgets.budget import Budget
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

UNBOUNDED: Final = 2**31 - 1
MOST_BUDGETS: Final = 50

_WEEK: Final = (dt.date(2028, 1, 2), 7)  # from a Sunday
_LEAP_YEAR: Final = (dt.date(2028, 1, 1), 366)
_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_BYTES_PER_DAY: Final = MINUTES_PER_DAY // 8
_QUARTERS_OF_A_DAY: Final = sum(1 << minute for minute in range(0, MINUTES_PER_DAY, 15))


@dataclass(frozen=True)
class Timeline:
    """The budgets of a pool over the days that are simulated; all times are UTC."""

    budgets: tuple[Budget, ...]

    @cached_property
    def dates(self) -> tuple[dt.date, ...]:
        """The days simulated."""
        weekly = all(budget.schedule is None or budget.schedule.is_weekly for budget in self.budgets)
        start, days = _WEEK if weekly else _LEAP_YEAR
        return tuple(start + dt.timedelta(days=day) for day in range(days))

    @cached_property
    def everything(self) -> int:
        """Every minute."""
        return (1 << self._minutes) - 1

    @cached_property
    def quarters(self) -> int:
        """Every quarter of an hour, which is when policies look."""
        return _days([_QUARTERS_OF_A_DAY] * len(self.dates))

    @property
    def _minutes(self) -> int:
        return len(self.dates) * MINUTES_PER_DAY

    def active(self, budget: Budget) -> int:
        """Return when one of the budgets is active: for its duration after each start.

        A schedule that never comes, such as 30 February, makes Karpenter take the budget for active always.
        """
        return self._windows[self.budgets.index(budget)]

    @cached_property
    def _windows(self) -> tuple[int, ...]:
        return tuple(self._window(budget) for budget in self.budgets)

    def _window(self, budget: Budget) -> int:
        schedule = budget.schedule
        if schedule is None:
            return self.everything
        before = dt.timedelta(days=len(self.dates))
        dates = (*(date - before for date in self.dates), *self.dates)
        day = schedule.day
        active = _days([day if schedule.fits(date) else 0 for date in dates])
        if not active or budget.minutes >= self._minutes:
            return self.everything
        if not budget.minutes:
            return 0
        covered = 1
        while covered < budget.minutes:
            step = min(covered, budget.minutes - covered)
            active |= active << step
            covered += step
        return active >> self._minutes & self.everything

    def allowed(self, reason: str, pool_nodes: int) -> dict[int, int]:
        """Return, by how many nodes Karpenter may disrupt at once for a reason, when that is so; the least first."""
        left = self.quarters
        found: dict[int, int] = {}
        for budget in sorted(self.budgets, key=lambda budget: budget.allowed(pool_nodes)):
            if left and reason in budget.reasons:
                times = left & self.active(budget)
                if times:
                    most = budget.allowed(pool_nodes)
                    found[most] = found.get(most, 0) | times
                    left &= ~times
        if left:
            found[UNBOUNDED] = left
        return found

    def most_hours_of_a_day(self, times: int) -> float:
        """Return how many hours of some day lie in a set of quarters of an hour, on the day where they are most."""
        bits = times.to_bytes(len(self.dates) * _BYTES_PER_DAY, "little")
        days = (bits[start : start + _BYTES_PER_DAY] for start in range(0, len(bits), _BYTES_PER_DAY))
        return max(int.from_bytes(day, "little").bit_count() for day in days) / 4

    def first(self, times: int) -> str:
        """Return the first of a set of times, for people: `Mon 09:15 UTC`, or `01-31 09:15 UTC` in a year."""
        minute = (times & -times).bit_length() - 1
        date = self.dates[minute // MINUTES_PER_DAY]
        name = _WEEKDAYS[date.weekday()] if len(self.dates) == _WEEK[1] else f"{date:%m-%d}"
        return f"{name} {minute // 60 % 24:02}:{minute % 60:02} UTC"


def _days(days: list[int]) -> int:
    """Put the minutes of each day behind those of the day before."""
    return int.from_bytes(b"".join(day.to_bytes(_BYTES_PER_DAY, "little") for day in days), "little")


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
