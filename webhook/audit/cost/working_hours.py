"""How much of a window was working time in a namespace, by the hours that the policy file states."""

from __future__ import annotations

import datetime as dt
from functools import cached_property
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.platform import DAYS
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.platform import WorkingHours

_DAY: Final = dt.timedelta(days=1)


class WorkingTime(Struct, frozen=True, dict=True):
    """The working hours of namespaces, and the window that they are compared with.

    Attributes:
        entries: those of the policy file; a name takes precedence over a pattern, and among patterns the first one applies.
        end: the end of the window.
        seconds: its length.
    """

    entries: Sequence[WorkingHours]
    end: dt.datetime
    seconds: int

    def of(self, namespace: str) -> float | None:
        """Return the seconds of the window in which a namespace works; None if the policy file does not say."""
        index = next((n for n, entry in enumerate(self.entries) if namespace in entry.namespaces), None)
        if index is None:
            fitting = (
                n for n, e in enumerate(self.entries) if any(formats.matches(p, namespace) for p in e.namespaces)
            )
            index = next(fitting, None)
        return None if index is None else self._seconds[index]

    @cached_property
    def _seconds(self) -> tuple[float, ...]:
        return tuple(_overlap(entry, self.end - dt.timedelta(seconds=self.seconds), self.end) for entry in self.entries)


def check_zones(entries: Sequence[WorkingHours]) -> None:
    """Check that each time zone is known.

    Raises:
        GpugateError: one is not.
    """
    for entry in entries:
        _zone(entry)


def _zone(entry: WorkingHours) -> ZoneInfo:
    try:
        return ZoneInfo(entry.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise GpugateError(
            f"platform.working_hours: unknown time zone {entry.time_zone!r}: write a name of the IANA database, such as "
            "Europe/Berlin; if it is one, install the database (tzdata)"
        ) from None


def _overlap(entry: WorkingHours, start: dt.datetime, end: dt.datetime) -> float:
    zone = _zone(entry)
    day, last = start.astimezone(zone).date() - _DAY, end.astimezone(zone).date()
    total = 0.0
    while day <= last:
        if DAYS[day.weekday()] in entry.days:
            begins, ends = (_at(day, text, zone) for text in (entry.start, entry.end))
            total += max(0.0, (min(end, ends) - max(start, begins)).total_seconds())
        day += _DAY
    return total


def _at(day: dt.date, text: str, zone: ZoneInfo) -> dt.datetime:
    """Return a time of a day in UTC, in which differences are those that pass; 24:00 is the begin of the next day."""
    hours, _, minutes = text.partition(":")
    if hours == "24":
        day, hours = day + _DAY, "0"
    return dt.datetime(day.year, day.month, day.day, int(hours), int(minutes), tzinfo=zone).astimezone(dt.UTC)
