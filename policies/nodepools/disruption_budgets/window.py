"""When a schedule with a duration is active, over a stretch of days.

Sets of days and of quarters of an hour are numbers with one bit for each, the earliest lowest. What Karpenter does at a
quarter of an hour follows from the starts before it, to the minute; nothing is counted minute by minute, so that the
50 budgets that a NodePool may have take a few milliseconds.

Source: Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (IsActive).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from itertools import pairwise
from operator import or_
from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools.disruption_budgets.cron import MINUTES_PER_DAY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.policies.nodepools.disruption_budgets.cron import Schedule

QUARTERS_PER_DAY: Final = 96
_BYTES_PER_DAY: Final = QUARTERS_PER_DAY // 8


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some days from `start` on; as many before them are followed too, for windows that last."""

    start: dt.date
    days: int

    @property
    def quarters(self) -> int:
        """Every quarter of an hour."""
        return (1 << self.days * QUARTERS_PER_DAY) - 1


@dataclass(frozen=True, slots=True)
class Window:
    """The quarters of an hour at which a budget is active, and whether it is so at every minute, or at none."""

    quarters: int
    always: bool = False
    never: bool = False


@lru_cache(maxsize=512)
def window(schedule: Schedule, minutes: int, stretch: Stretch) -> Window:
    """Return when a budget is active that is so for some minutes after each start of its schedule.

    A schedule that never comes, such as 30 February, makes Karpenter take the budget for active always.
    """
    fitting = _fitting(schedule, stretch)
    comes = fitting and schedule.hours and schedule.minutes
    if not comes or minutes >= stretch.days * MINUTES_PER_DAY:
        return Window(stretch.quarters, always=True)
    if not minutes:
        return Window(0, never=True)
    if _without_gap(schedule, minutes, fitting, stretch.days):
        return Window(stretch.quarters, always=True)
    before = min(stretch.days, minutes // MINUTES_PER_DAY + 1)
    days = f"{fitting >> stretch.days - before:b}"[::-1].encode().replace(b"0", bytes(_BYTES_PER_DAY))
    # A start between two quarters of an hour is first seen at the second, and longest when it is just before that.
    on_time = _placed(_of_a_day(schedule, 0, 0), days)
    late = _placed(_of_a_day(schedule, 1, 14), days) << 1
    longest = _placed(_of_a_day(schedule, 16 - minutes % 15, 14), days) << 1
    whole = minutes // 15
    active = _spread(on_time | late, whole) | (longest | (on_time if minutes % 15 else 0)) << whole
    return Window(active >> before * QUARTERS_PER_DAY & stretch.quarters)


def _fitting(schedule: Schedule, stretch: Stretch) -> int:
    """Return the days on which a schedule starts, from as many before the stretch as it has."""
    months, days, weekdays = _calendar(stretch)
    in_months = _union(map(months.__getitem__, schedule.months))
    by_month = _union(map(days.__getitem__, schedule.days))
    by_week = _union(map(weekdays.__getitem__, schedule.weekdays))
    return in_months & (by_month & by_week if schedule.both_days else by_month | by_week)


@cache
def _calendar(stretch: Stretch) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Return by number of the month, of the day of the month and of the day of the week: the days that have it."""
    months, days, weekdays = dict.fromkeys(range(1, 13), 0), dict.fromkeys(range(1, 32), 0), dict.fromkeys(range(7), 0)
    for place in range(2 * stretch.days):
        date = stretch.start + dt.timedelta(days=place - stretch.days)
        months[date.month] |= 1 << place
        days[date.day] |= 1 << place
        weekdays[date.isoweekday() % 7] |= 1 << place
    return months, days, weekdays


def _without_gap(schedule: Schedule, minutes: int, fitting: int, days: int) -> bool:
    """Tell whether each start comes before the window of the one before it ends, on all days of the stretch."""
    in_hour, hours = sorted(schedule.minutes), sorted(schedule.hours)
    gaps = [later - earlier for earlier, later in pairwise(in_hour)]
    gaps += [(later - earlier) * 60 + in_hour[0] - in_hour[-1] for earlier, later in pairwise(hours)]
    if max(gaps, default=0) > minutes:
        return False
    first, last = hours[0] * 60 + in_hour[0], hours[-1] * 60 + in_hour[-1]
    followed = _spread(fitting, (last - first + minutes) // MINUTES_PER_DAY) << 1
    # What starts with the stretch needs nothing before it.
    alone = fitting & ~followed & ~((first == 0) << days)
    days_left = 2 * days + 1 - fitting.bit_length()
    return not alone >> days and days_left <= (last + minutes) // MINUTES_PER_DAY


def _of_a_day(schedule: Schedule, least: int, most: int) -> int:
    """Return the quarters of an hour in which it starts at least and at most so many minutes after their beginning."""
    hour = _union(1 << minute // 15 for minute in schedule.minutes if least <= minute % 15 <= most)
    return _union(hour << number * 4 for number in schedule.hours)


def _placed(of_a_day: int, days: bytes) -> int:
    """Put the quarters of a day into days that are a `1`; the others are written out already."""
    if not of_a_day:
        return 0
    return int.from_bytes(days.replace(b"1", of_a_day.to_bytes(_BYTES_PER_DAY, "little")), "little")


def _spread(bits: int, count: int) -> int:
    """Return the bits and those above each of them, so many for each."""
    if not count:
        return 0
    covered = 1
    while covered < count:
        step = min(covered, count - covered)
        bits |= bits << step
        covered += step
    return bits


def _union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)
