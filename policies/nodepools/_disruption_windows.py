"""When the disruption budgets of a NodePool allow disruption, as Karpenter computes it.

A schedule has five fields in UTC: minute, hour, day of month, month, and day of week from 0 (Sunday) to 6; or it is
`@daily` or another macro. Names of months and days, lists, ranges and steps are valid, and `?` means `*`. There is no
`7`, `L`, `W` or `#`, no range that wraps around and no time zone.

Times are bitsets of quarters of an hour: of a week, or of a leap year if a schedule names days of a month. A schedule
starts at the same minutes on every day on which it starts, and a day is active until the window of the last start before
it ends. So each day takes one step, and the 50 budgets that a NodePool may have take about ten milliseconds.

Sources: Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (Budget, GetAllowedDisruptionsByReason, IsActive) and
`pkg/apis/crds/karpenter.sh_nodepools.yaml`, which refuses `@every`; robfig/cron v3.0.1 `parser.go`, `spec.go`.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk import durations
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

MINUTES_PER_DAY: Final = 1440
# Characters; a list of every minute, hour, day, month and weekday has 500.
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
# The characters that Go's `unicode.IsSpace` accepts.
_BLANKS = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_NUMBER = re.compile(r"\+?[0-9]{1,18}")


class ScheduleError(ValueError):
    """The schedule is invalid. The message is the end of a sentence."""


class _CronField(Struct, frozen=True):
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()  # the names of the values, from the least on


_CRON_FIELDS: Final = (
    _CronField("minute", 0, 59),
    _CronField("hour", 0, 23),
    _CronField("day of month", 1, 31),
    _CronField("month", 1, 12, _MONTHS),
    _CronField("day of week", 0, 6, _WEEKDAYS),
)


class Schedule(Struct, frozen=True):
    """The starts of a budget: the matching values of each field.

    `both_days`: one of the two fields for days is `*`, so both must match; otherwise one is enough.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    both_days: bool

    @property
    def is_weekly(self) -> bool:
        """Whether all weeks are equal."""
        return len(self.months) == 12 and len(self.days) == 31


@lru_cache(maxsize=512)
def parse(text: str) -> Schedule:
    """Parse a schedule.

    Raises:
        ScheduleError: Karpenter or the API server rejects the schedule.
    """
    if len(text) > _LONGEST:
        raise ScheduleError(f"has {len(text)} characters (maximum: {_LONGEST})")
    if text.startswith("@") and text not in _SHORTHANDS:
        raise ScheduleError(f'is "{_short(text)}", an unknown shorthand; @daily is an example of a known one')
    if "TZ=" in text:
        raise ScheduleError("names a time zone, but schedules are in UTC")
    fields = [field for field in _BLANKS.split(_SHORTHANDS.get(text, text)) if field]
    if len(fields) != len(_CRON_FIELDS):
        raise ScheduleError(f"has {len(fields)} fields; it needs minute, hour, day, month and day of week")
    read = [_values(field, cron_field) for field, cron_field in zip(fields, _CRON_FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = (values for values, _ in read)
    return Schedule(minutes, hours, days, months, weekdays, both_days=read[2][1] or read[4][1])


def _values(field: str, cron_field: _CronField) -> tuple[frozenset[int], bool]:
    """Return the values that a field names, and whether it is `*` without a step."""
    values: set[int] = set()
    star = False
    # A long text may repeat one part a thousand times.
    for part in dict.fromkeys(field.split(",")):
        if part:
            start, end, step, is_star = _range(part, cron_field)
            values.update(range(start, end + 1, step))
            star = star or is_star
    return frozenset(values), star


def _range(part: str, cron_field: _CronField) -> tuple[int, int, int, bool]:
    span, *steps = part.split("/")
    first, *lasts = span.split("-")
    is_star = first in {"*", "?"}
    if len(steps) > 1 or (len(lasts) > 1 and not is_star):
        raise ScheduleError(f'has the {cron_field.name} "{_short(part)}", which is not a number, range or step')
    if is_star:
        start, end = cron_field.least, cron_field.most
    else:
        start = _number(first, cron_field, names=True)
        end = _number(lasts[0], cron_field, names=True) if lasts else start
    step = _number(steps[0], cron_field, names=False) if steps else 1
    if steps and not lasts:
        end = cron_field.most
    if not cron_field.least <= start <= end <= cron_field.most:
        wrong = f"outside {cron_field.least} to {cron_field.most}" if start <= end else "backwards: write two ranges"
        raise ScheduleError(f'has the {cron_field.name} "{_short(part)}", which is {wrong}')
    if not step:
        raise ScheduleError(f'has the {cron_field.name} "{_short(part)}", with a step of 0')
    return start, end, step, is_star and step == 1


def _number(text: str, cron_field: _CronField, *, names: bool) -> int:
    if names and text.lower() in cron_field.names:
        return cron_field.least + cron_field.names.index(text.lower())
    if not _NUMBER.fullmatch(text):
        wanted = "number or name" if names and cron_field.names else "number"
        raise ScheduleError(f'has the {cron_field.name} "{_short(text)}", which is not a {wanted}')
    return int(text)


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:17]}..."


QUARTERS_PER_DAY: Final = 96
_BYTES_PER_DAY: Final = QUARTERS_PER_DAY // 8
_DAY: Final = (1 << MINUTES_PER_DAY) - 1


@dataclass(frozen=True)
class Stretch:
    """A number of days from `start` on. The same number of days before them is simulated too, for long windows."""

    start: dt.date
    days: int

    @property
    def quarters(self) -> int:
        """All quarters of an hour."""
        return (1 << self.days * QUARTERS_PER_DAY) - 1

    @cached_property
    def followed(self) -> tuple[tuple[int, int, int], ...]:
        """The month, day of the month and day of the week of every simulated day."""
        dates = (self.start + dt.timedelta(days=offset) for offset in range(-self.days, self.days))
        return tuple((date.month, date.day, date.isoweekday() % 7) for date in dates)


class Window(Struct, frozen=True):
    """The quarters of an hour in which a budget is active, and whether it is always or never active."""

    quarters: int
    always: bool = False
    never: bool = False


@lru_cache(maxsize=512)
def window(schedule: Schedule, minutes: int, stretch: Stretch) -> Window:
    """Return the window of a budget that is active for some minutes after each start of its schedule.

    Karpenter treats a budget whose schedule never starts, such as 30 February, as always active.
    """
    hour = sum(1 << minute for minute in schedule.minutes)
    starts = sum(hour << number * 60 for number in schedule.hours)
    days = start_days(schedule, stretch)
    if not starts or True not in days or minutes >= stretch.days * MINUTES_PER_DAY:
        return Window(stretch.quarters, always=True)
    first, last = (starts & -starts).bit_length() - 1, starts.bit_length() - 1
    own = _spread(starts, minutes) & _DAY
    own_quarters = sum(1 << quarter for quarter in range(QUARTERS_PER_DAY) if own >> quarter * 15 & 1)
    # How far windows of earlier days must extend into a day with starts to make it active at every minute.
    enough = first if own == _DAY >> first << first else MINUTES_PER_DAY
    before, days = days[: stretch.days], days[stretch.days :]
    ends = last + minutes - MINUTES_PER_DAY  # of the windows of a day, counted from the next day on
    left = max(0, ends - before[::-1].index(True) * MINUTES_PER_DAY) if True in before else 0
    active: list[bytes] = []
    always = True
    for has_starts in days:
        earlier = min(left, MINUTES_PER_DAY)
        quarters = (1 << (earlier + 14) // 15) - 1
        active.append((quarters | own_quarters if has_starts else quarters).to_bytes(_BYTES_PER_DAY, "little"))
        always = always and earlier >= (enough if has_starts else MINUTES_PER_DAY)
        left = max(0, ends) if has_starts else left - earlier
    return Window(int.from_bytes(b"".join(active), "little"), always, never=not minutes)


def start_days(schedule: Schedule, stretch: Stretch) -> list[bool]:
    """Return for each simulated day whether the schedule starts on it: first the days before the stretch, then its own."""
    months, days, weekdays = schedule.months, schedule.days, schedule.weekdays
    if schedule.both_days:
        return [month in months and day in days and weekday in weekdays for month, day, weekday in stretch.followed]
    return [month in months and (day in days or weekday in weekdays) for month, day, weekday in stretch.followed]


def _spread(bits: int, count: int) -> int:
    """Return the bits and `count` bits above each of them; more than a day makes no difference."""
    covered, count = 1, min(count, MINUTES_PER_DAY)
    while covered < count:
        step = min(covered, count - covered)
        bits |= bits << step
        covered += step
    return bits if count else 0


REASONS: Final = ("Underutilized", "Empty", "Drifted")

_NODES = re.compile(r"(100|[0-9]{1,2})%|[0-9]+")
_DURATION = re.compile(r"(?=[0-9])(?:([0-9]{1,18})h)?(?:([0-9]{1,18})m)?(?:0s)?")
_MOST_MINUTES = (2**63 - 1) // durations.MINUTE  # that Go's nanoseconds can count
_MOST_NODES = 2**31 - 1
_DEFAULT_NODES = "10%"  # of the CRD


class BudgetError(ValueError):
    """The budget is invalid."""


class Fault(Struct, frozen=True):
    """Why the API server or Karpenter rejects a budget: the field, and what to write instead."""

    field: Field
    message: str
    hint: str


class Budget(Struct, frozen=True):
    """A valid budget.

    Attributes:
        field: the element of `budgets`.
        nodes: the number of nodes that may be disrupted at once: `2`, or `10%` of the pool.
        reasons: the reasons for which it applies.
        schedule: the times at which it becomes active; None if it is always active.
        minutes: the time for which it is active after each start.
    """

    field: Field
    nodes: str
    reasons: frozenset[str]
    schedule: Schedule | None
    minutes: int

    def allowed(self, pool_nodes: int) -> int:
        """Return the number of nodes that Karpenter may disrupt at once in a pool of this size, rounded up."""
        percent = self.nodes.removesuffix("%")
        return int(percent) if percent == self.nodes else -(-int(percent) * pool_nodes // 100)


def read(field: Field) -> Budget:
    """Parse a budget.

    Raises:
        BudgetError: the budget has a fault.
    """
    if next(faults(field), None):
        raise BudgetError
    # An empty list of reasons applies to none, unlike a missing one.
    reasons = frozenset(field["reasons"].texts if field["reasons"] else REASONS)
    schedule = parse(field["schedule"].text) if field["schedule"] else None
    minutes = (_minutes(field["duration"].text) or 0) if schedule else 0
    return Budget(field, field["nodes"].text or _DEFAULT_NODES, reasons, schedule, minutes)


def faults(field: Field) -> Iterator[Fault]:
    """Yield the faults of a budget."""
    yield from _nodes(field["nodes"])
    known = ", ".join(REASONS)
    for reason in field["reasons"]:
        if reason.value not in REASONS:
            yield Fault(reason, f'unknown reason "{reason.text[:20]}"', f"write one of {known}")
    yield from _schedule(field)


def _nodes(nodes: Field) -> Iterator[Fault]:
    if not nodes:
        return
    if not isinstance(nodes.value, str):
        yield Fault(nodes, "nodes is not a string", 'put the value in quotes: nodes: "0"')
    elif not _NODES.fullmatch(nodes.text):
        yield Fault(nodes, f'nodes is "{nodes.text[:20]}"', 'write a whole number such as "1", or "0%" to "100%"')
    elif len(nodes.text.lstrip("0")) > 10 or int(nodes.text.removesuffix("%")) > _MOST_NODES:
        yield Fault(nodes, "nodes is above 2147483647, the largest number that Karpenter reads", "remove the budget")


def _schedule(field: Field) -> Iterator[Fault]:
    schedule, duration = field["schedule"], field["duration"]
    if bool(schedule) != bool(duration):
        present, missing = (schedule, duration) if schedule else (duration, schedule)
        names = [str(member.path[-1]) for member in (present, missing)]
        yield Fault(
            missing,
            f"has a {names[0]} without a {names[1]}",
            f"write schedule and duration together, or neither: {_EXAMPLE}",
        )
    if schedule:
        try:
            parse(schedule.text)
        except ScheduleError as error:
            # The CRD requires five words or a shorthand.
            stored = len(schedule.text.split()) >= 5
            result = "Karpenter then disrupts no node of this pool" if stored else "the API server refuses it"
            message = f"schedule {error}; {result}"
            yield Fault(schedule, message, f"write minute, hour, day, month and day of week in UTC: {_EXAMPLE}")
    if duration:
        minutes = _minutes(duration.text)
        if minutes is None or minutes > _MOST_MINUTES:
            wrong = "is not in whole hours and minutes" if minutes is None else "is longer than 292 years, the maximum"
            yield Fault(duration, f'duration "{duration.text[:20]}" {wrong}', "write hours and minutes, such as 8h30m")


def _minutes(duration: str) -> int | None:
    """Return the minutes of a duration in whole hours and minutes; None for other durations."""
    match = _DURATION.fullmatch(duration)
    return int(match[1] or 0) * 60 + int(match[2] or 0) if match and (match[1] or match[2]) else None


_EXAMPLE = 'schedule: "0 9 * * MON-FRI" and duration: 8h'


UNBOUNDED: Final = 2**31 - 1
MOST_BUDGETS: Final = 50

_WEEK: Final = Stretch(dt.date(2028, 1, 2), 7)  # from a Sunday
_LEAP_YEAR: Final = Stretch(dt.date(2028, 1, 1), 366)
_SIMULATION_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Timeline:
    """The budgets of a pool over the days that are simulated; all times are UTC.

    `over` are these days; without them, they are a week or a leap year that stand for all others.
    """

    budgets: tuple[Budget, ...]
    over: Stretch | None = None

    @cached_property
    def stretch(self) -> Stretch:
        """The simulated days."""
        if self.over is not None:
            return self.over
        weekly = all(budget.schedule is None or budget.schedule.is_weekly for budget in self.budgets)
        return _WEEK if weekly else _LEAP_YEAR

    def window(self, budget: Budget) -> Window:
        """Return the window of one of the budgets."""
        return self._windows[id(budget)]

    @cached_property
    def _windows(self) -> dict[int, Window]:
        always = Window(self.stretch.quarters, always=True)
        return {
            id(budget): window(budget.schedule, budget.minutes, self.stretch) if budget.schedule else always
            for budget in self.budgets
        }

    def allowed(self, reason: str, pool_nodes: int) -> dict[int, int]:
        """Return the number of nodes that Karpenter may disrupt at once for a reason -> the times, the least first."""
        left = self.stretch.quarters
        times_by_nodes: dict[int, int] = {}
        for budget in sorted(self.budgets, key=lambda budget: budget.allowed(pool_nodes)):
            if left and reason in budget.reasons:
                times = left & self.window(budget).quarters
                if times:
                    most = budget.allowed(pool_nodes)
                    times_by_nodes[most] = times_by_nodes.get(most, 0) | times
                    left &= ~times
        if left:
            times_by_nodes[UNBOUNDED] = left
        return times_by_nodes

    def most_hours_of_a_day(self, times: int) -> float:
        """Return the hours of the day with the most quarters of an hour in a set."""
        size = QUARTERS_PER_DAY // 8
        bits = times.to_bytes(self.stretch.days * size, "little")
        days = (bits[start : start + size] for start in range(0, len(bits), size))
        return max(int.from_bytes(day, "little").bit_count() for day in days) / 4

    def first(self, times: int) -> str:
        """Return the first of a set of times as text: `Mon 09:15 UTC`, or `01-31 09:15 UTC` in a year."""
        days, quarter = divmod((times & -times).bit_length() - 1, QUARTERS_PER_DAY)
        date = self.stretch.start + dt.timedelta(days=days)
        name = _SIMULATION_WEEKDAYS[date.weekday()] if self.stretch is _WEEK else f"{date:%m-%d}"
        return f"{name} {quarter // 4:02}:{quarter % 4 * 15:02} UTC"


def timeline(pool: Field, ctx: AnyContext) -> Timeline | None:  # noqa: ARG001 -- what `Context.derived` calls
    """Return the timeline of a pool's budgets; None if one of them has a fault, which stops all disruption.

    It is also None for more budgets than the CRD allows.
    """
    budgets = list(pool["spec", "disruption", "budgets"])
    if len(budgets) > MOST_BUDGETS:
        return None
    try:
        return Timeline(tuple(read(field) for field in budgets))
    except BudgetError:
        return None
