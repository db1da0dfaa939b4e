"""How the figures of audits moved: their values over the runs of a history, and the groups that are new, gone or changed."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.model import Use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpugate.webhook.audit.history import Counts, Run
    from gpugate.webhook.audit.words import Amounts

WEEK: Final = dt.timedelta(days=7)
POINTS: Final = 60
"""The highest number of points of a sparkline."""
_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_WIDTH: Final = 24
_CENT: Final = 0.005

Unit = Literal["usd", "objects", "share"]


class Point(NamedTuple):
    """The value of a figure in one run."""

    time: dt.datetime
    value: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure over the runs that have it, oldest first; the last point is of this audit.

    Attributes:
        name: as in the report.
        unit: US dollars per hour, a number of objects, or a share.
        points: at most `POINTS`.
        base: its value in the run that `Trend.base` names; None if that run does not have it.
        last: its value in the previous run; None if that run does not have it.
    """

    name: str
    unit: Unit
    points: tuple[Point, ...]
    base: float | None
    last: float | None

    @property
    def now(self) -> float:
        """Its value in this audit."""
        return self.points[-1].value


class Moved(NamedTuple):
    """A policy, namespace or team whose counts or cost differ from the base; None for a value that a run does not have."""

    by: Literal["policy", "namespace", "team"]
    name: str
    counted: str
    before: float | None
    now: float | None
    unit: Unit

    @property
    def size(self) -> float:
        """How far it moved."""
        return abs((self.now or 0.0) - (self.before or 0.0))


@dataclass(frozen=True, slots=True)
class Trend:
    """This audit after the earlier runs of the same cluster and selection.

    Attributes:
        earlier: the earlier runs, oldest first; at least one.
        now: this audit.
    """

    earlier: tuple[Run, ...]
    now: Run

    @property
    def base(self) -> Run:
        """The run to compare with: the last one that is at least a week old, else the oldest."""
        old = [run for run in self.earlier if self.now.time - run.time >= WEEK]
        return old[-1] if old else self.earlier[0]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The figures of this audit, without those that are 0 in all runs."""
        return tuple(figure for name in _FIGURES if (figure := self._figure(name)))

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why figures of `base` and of this audit are not comparable: less was read or measured, or policies differ."""
        base, now = self.base, self.now
        reasons = []
        if now.coverage < base.coverage - _COVERED:
            reasons.append(
                f"the coverage fell from {say.percent(base.coverage)} to {say.percent(now.coverage)}, so counts may be too low"
            )
        measured = base.use_coverage, now.use_coverage
        if measured[0] is not None and (measured[1] or 0.0) < measured[0] - _COVERED:
            reasons.append(
                f"the share of allocated GPUs whose use is known fell from {say.percent(measured[0])} to "
                f"{say.percent(measured[1] or 0.0)}, so idle GPUs may be missing"
            )
        if now.gpugate != base.gpugate:
            reasons.append(f"gpugate {base.gpugate} and {now.gpugate} have different policies")
        return tuple(reasons)

    def _figure(self, name: str) -> Figure | None:
        unit, value_of = _FIGURES[name]
        now = value_of(self.now)
        if now is None:
            return None
        values = [(run.time, value) for run in self.earlier if (value := value_of(run)) is not None]
        if not now and not any(value for _, value in values):
            return None
        points = _thinned([Point(*pair) for pair in values], POINTS - 1)
        return Figure(name, unit, (*points, Point(self.now.time, now)), value_of(self.base), value_of(self.earlier[-1]))

    @property
    def moved(self) -> tuple[Moved, ...]:
        """What is new, gone or changed since `base`: policies first, then namespaces and teams, the largest change first."""
        base, now = self.base, self.now
        counts = [
            *_moved("policy", base.policies, now.policies, _OBJECTS),
            *_moved("namespace", base.namespaces, now.namespaces, (*_OBJECTS[:1], *_MONEY)),
            *_moved("team", base.teams, now.teams, _MONEY),
        ]
        order = ("policy", "namespace", "team")
        return tuple(sorted(counts, key=lambda moved: (order.index(moved.by), -moved.size, moved.name, moved.counted)))


def trend(runs: Iterable[Run], now: Run) -> Trend | None:
    """Return the trend of the runs before this audit that are of its cluster and selection; None without any."""
    same = [run for run in runs if run.is_of(now) and run.selection == now.selection and run.time < now.time]
    return Trend(tuple(sorted(same, key=lambda run: run.time)), now) if same else None


def _usd(name: str) -> Callable[[Run], float | None]:
    # A use that no GPU has is missing in a run with costs, and means 0 if the uses are known.
    is_use = name in {use.value for use in Use}

    def value(run: Run) -> float | None:
        missing = 0.0 if is_use and run.use_coverage is not None else None
        return run.usd_per_hour.get(name, missing)

    return value


def _objects(name: str) -> Callable[[Run], float | None]:
    return lambda run: float(getattr(run.objects, name))


_FIGURES: Final[Mapping[str, tuple[Unit, Callable[[Run], float | None]]]] = {
    "spend": ("usd", _usd("spend")),
    **{use.value: ("usd", _usd(use.value)) for use in Use},
    say.UNALLOCATED: ("usd", _usd(say.UNALLOCATED)),
    "at risk": ("usd", _usd("at risk")),
    "would be denied": ("objects", _objects("deny")),
    "would be mutated": ("objects", _objects("mutate")),
    "would get a warning": ("objects", _objects("warn")),
    "coverage": ("share", lambda run: run.coverage),
}
_COVERED: Final = 0.005
_OBJECTS: Final = (("denied", "deny"), ("mutated", "mutate"), ("with a warning", "warn"))
_MONEY: Final = (("spend", "usd_per_hour"), ("idle or parked", "idle_or_parked_usd_per_hour"))


def _moved(
    by: Literal["policy", "namespace", "team"],
    before: Mapping[str, Counts],
    now: Mapping[str, Counts],
    columns: Sequence[tuple[str, str]],
) -> Iterator[Moved]:
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        for counted, key in columns:
            values = (getattr(old, key) if old else None), (getattr(new, key) if new else None)
            unit: Unit = "objects" if isinstance(values[0] if values[0] is not None else values[1], int) else "usd"
            # A use that was not measured in one of the runs did not move.
            unknown = key == "idle_or_parked_usd_per_hour" and (
                (old and values[0] is None) or (new and values[1] is None)
            )
            if not unknown and abs((values[1] or 0) - (values[0] or 0)) > _CENT:
                yield Moved(by, name, counted, *values, unit)


def _thinned(points: Sequence[Point], most: int) -> Sequence[Point]:
    """Return the last point of each of at most `most` equal parts of the time."""
    if len(points) <= most:
        return points
    first, whole = points[0].time, points[-1].time - points[0].time
    remaining = {min(int((point.time - first) / whole * most), most - 1) if whole else 0: point for point in points}
    return list(remaining.values())


def value(number: float | None, unit: Unit, amount: Amounts) -> str:
    """Format a value of a figure."""
    if number is None:
        return say.UNKNOWN
    if unit == "usd":
        return amount(number)
    return say.percent(number) if unit == "share" else f"{number:,.0f}"


def change(figure: Figure, before: float | None, amount: Amounts) -> str:
    """Format the change of a figure since an earlier value; empty if it did not move."""
    if before is None:
        return ""
    moved = figure.now - before
    if abs(moved) < (_CENT if figure.unit == "usd" else 0.0005):
        return "="
    if figure.unit == "usd":
        return f"{'+' if moved > 0 else '-'}{amount(abs(moved))}"
    return f"{moved:+.1%}" if figure.unit == "share" else f"{moved:+,.0f}"


def moved_text(moved: Moved, amount: Amounts) -> str:
    """Return a phrase for what is new, gone or changed: `new: policy pods/x: 3 denied`."""
    subject = f"{moved.by} {moved.name}"
    before, now = value(moved.before, moved.unit, amount), value(moved.now, moved.unit, amount)
    rate = "/h" if moved.unit == "usd" else ""
    if not moved.before:
        return f"new: {subject}: {now}{rate} {moved.counted}"
    if not moved.now:
        return f"gone: {subject}: {before}{rate} {moved.counted}"
    return f"{subject}: {before} -> {now}{rate} {moved.counted}"


def sparkline(figure: Figure) -> str:
    """Return a figure as a line of block characters, of which the lowest is 0."""
    values = [point.value for point in _thinned(figure.points[:-1], _WIDTH - 1)] + [figure.now]
    most = max(values)
    return "".join(_BLOCKS[round(amount / most * (len(_BLOCKS) - 1)) if most else 0] for amount in values)
