"""Schedules of disruption budgets, as the cron package that Karpenter uses reads them.

Five fields in UTC: minute, hour, day of month, month, day of week from 0 (Sunday) to 6; or `@daily` and the like. Names
of months and days, lists, ranges and steps are known, `?` is `*`. There is no `7`, `L`, `W` or `#`, no range that wraps
and no time zone.

Sources: robfig/cron v3.0.1 `parser.go`, `spec.go`; Karpenter v1.14.1 `pkg/apis/crds/karpenter.sh_nodepools.yaml`, which
refuses `@every`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

MINUTES_PER_DAY: Final = 1440
# Every minute, hour, day, month and weekday by its number takes 500.
_LONGEST: Final = 2000

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# What Go's `unicode.IsSpace` takes for a blank.
_BLANKS = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_NUMBER = re.compile(r"\+?[0-9]{1,18}")


class ScheduleError(ValueError):
    """The text is no schedule; the message, the end of a sentence, says what is wrong."""


@dataclass(frozen=True, slots=True)
class _Place:
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()  # of the values from the least on


_PLACES: Final = (
    _Place("minute", 0, 59),
    _Place("hour", 0, 23),
    _Place("day of month", 1, 31),
    _Place("month", 1, 12, _MONTHS),
    _Place("day of week", 0, 6, _WEEKDAYS),
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a budget starts: in each field the values that fit.

    `both_days`: one of the two fields for days is `*`, so that both must fit; else it is enough that one does.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    both_days: bool

    @property
    def is_weekly(self) -> bool:
        """Whether every week is like the other."""
        return len(self.months) == 12 and len(self.days) == 31


@lru_cache(maxsize=512)
def parse(text: str) -> Schedule:
    """Read a schedule.

    Raises:
        ScheduleError: Karpenter, or the API server before it, refuses this schedule.
    """
    if len(text) > _LONGEST:
        raise ScheduleError(f"has {len(text)} characters, at most {_LONGEST} are read")
    if text.startswith("@") and text not in _SHORTHANDS:
        raise ScheduleError(f'is "{_short(text)}", none of the shorthands, such as @daily')
    if "TZ=" in text:
        raise ScheduleError("names a time zone, but schedules are in UTC")
    fields = [field for field in _BLANKS.split(_SHORTHANDS.get(text, text)) if field]
    if len(fields) != len(_PLACES):
        raise ScheduleError(f"has {len(fields)} fields, not the 5 of minute, hour, day, month and day of week")
    read = [_values(field, place) for field, place in zip(fields, _PLACES, strict=True)]
    minutes, hours, days, months, weekdays = (values for values, _ in read)
    return Schedule(minutes, hours, days, months, weekdays, both_days=read[2][1] or read[4][1])


def _values(field: str, place: _Place) -> tuple[frozenset[int], bool]:
    """Return the values that a field names, and whether it says `*` without a step."""
    values: set[int] = set()
    star = False
    for part in field.split(","):
        if part:
            start, end, step, is_star = _range(part, place)
            values.update(range(start, end + 1, step))
            star = star or is_star
    return frozenset(values), star


def _range(part: str, place: _Place) -> tuple[int, int, int, bool]:
    span, *steps = part.split("/")
    first, *lasts = span.split("-")
    is_star = first in {"*", "?"}
    if len(steps) > 1 or (len(lasts) > 1 and not is_star):
        raise ScheduleError(f'has the {place.name} "{_short(part)}", which is no number, range or step')
    if is_star:
        start, end = place.least, place.most
    else:
        start = _number(first, place, names=True)
        end = _number(lasts[0], place, names=True) if lasts else start
    step = _number(steps[0], place, names=False) if steps else 1
    if steps and not lasts:
        end = place.most
    if not place.least <= start <= end <= place.most:
        wrong = f"outside {place.least} to {place.most}" if start <= end else "backwards: write two ranges"
        raise ScheduleError(f'has the {place.name} "{_short(part)}", which is {wrong}')
    if not step:
        raise ScheduleError(f'has the {place.name} "{_short(part)}", with a step of 0')
    return start, end, step, is_star and step == 1


def _number(text: str, place: _Place, *, names: bool) -> int:
    if names and text.lower() in place.names:
        return place.least + place.names.index(text.lower())
    if not _NUMBER.fullmatch(text):
        wanted = "number or name" if names and place.names else "number"
        raise ScheduleError(f'has the {place.name} "{_short(text)}", which is no {wanted}')
    return int(text)


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:17]}..."
