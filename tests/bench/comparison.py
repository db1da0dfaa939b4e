"""Whether figures got worse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from figures import Figure


@dataclass(frozen=True, slots=True)
class Change:
    """A figure before and now. A ratio above 1 is worse, whichever way the figure counts."""

    before: Figure
    now: Figure

    @property
    def of_medians(self) -> float:
        """How many times worse the usual run is."""
        return _ratio(self.before, self.before.median, self.now.median)

    @property
    def of_bests(self) -> float:
        """How many times worse the run is that was disturbed least."""
        return _ratio(self.before, self.before.best, self.now.best)

    def is_worse(self, threshold: float) -> bool:
        """Say whether it got worse by more than so many percent.

        Both the median and the best run must have: a neighbour on the machine moves the median, slower code moves both.
        """
        return min(self.of_medians, self.of_bests) > 1 + threshold / 100


def changes(before: Iterable[Figure], now: Iterable[Figure]) -> list[Change]:
    """Pair the figures of the same name and unit, in the order of `now`."""
    known = {(figure.name, figure.unit): figure for figure in before if not figure.is_circumstance}
    return [Change(known[figure.name, figure.unit], figure) for figure in now if (figure.name, figure.unit) in known]


def table(found: Sequence[Change], threshold: float) -> str:
    """Write every change as a line, with a mark where it is worse by more than so many percent."""
    width = max((len(change.now.name) for change in found), default=0)
    heading = f"{'':<{width}}  {'before':>10} {'now':>10}      median   best   (above 1 is worse)"
    lines = [
        f"{change.now.name:<{width}}  {change.before.median:>10.2f} {change.now.median:>10.2f} {change.now.unit:<4}"
        f"{change.of_medians:>7.2f} {change.of_bests:>6.2f}{'   WORSE' if change.is_worse(threshold) else ''}"
        for change in found
    ]
    return "\n".join([heading, *lines])


def _ratio(figure: Figure, before: float, now: float) -> float:
    worse, better = (before, now) if figure.more_is_better else (now, before)
    if better > 0:
        return worse / better
    return 1.0 if worse <= 0 else float("inf")
