"""What a measurement found, as it is shown and kept."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_SCALE: Final = {"us": 1e6, "ms": 1e3}
_RATE: Final = "/s"


class FiguresError(Exception):
    """A file that holds no figures."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A quantity measured several times, in its unit.

    Units: us, ms, s, MB, count, `/s` (more is better), x (a ratio) and % (a circumstance of the measurement: not compared).
    """

    name: str
    unit: str
    median: float
    least: float
    most: float

    @property
    def more_is_better(self) -> bool:
        """Whether it gets worse when it falls."""
        return self.unit == _RATE

    @property
    def is_circumstance(self) -> bool:
        """Whether it says how the measurement went, not what it found."""
        return self.unit == "%"

    @property
    def best(self) -> float:
        """The run that was disturbed least."""
        return self.most if self.more_is_better else self.least


class Measured(NamedTuple):
    """A figure and what it should be, at most or (rates) at least; None where nothing is asked of it."""

    figure: Figure
    aim: float | None = None


def figure(name: str, measured: Sequence[float], unit: str) -> Figure:
    """Sum up measurements; times come in seconds, whatever unit they are shown in."""
    scale = _SCALE.get(unit, 1.0)
    return Figure(name, unit, statistics.median(measured) * scale, min(measured) * scale, max(measured) * scale)


def line(measured: Measured) -> str:
    """Write a figure for people, with what it should be."""
    found, aim = measured
    text = (
        f"{found.name:<62}{_digits(found.median):>9} {found.unit:2}  ({_digits(found.least)} to {_digits(found.most)}"
    )
    if aim is None:
        return f"{text})"
    missed = found.median < aim if found.more_is_better else found.median > aim
    side = "below" if found.more_is_better else "above"
    return f"{text}; aim {aim:g})" + (f"   {side} the aim" if missed else "")


def save(path: Path, figures: Iterable[Figure]) -> None:
    """Write figures for `load`."""
    found = {
        one.name: {"unit": one.unit, "median": one.median, "least": one.least, "most": one.most} for one in figures
    }
    path.write_text(json.dumps({"figures": found}, indent=1) + "\n")


def load(path: Path) -> list[Figure]:
    """Read figures that `save` wrote.

    Raises:
        FiguresError: the file cannot be read, or is none.
    """
    try:
        kept = json.loads(path.read_text())["figures"]
        return [
            Figure(name, one["unit"], float(one["median"]), float(one["least"]), float(one["most"]))
            for name, one in kept.items()
        ]
    except OSError as error:
        raise FiguresError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except (ValueError, TypeError, LookupError, AttributeError):
        raise FiguresError(f"{path} holds no figures: write it with --save") from None


def _digits(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"
