"""The time by which an API server judges certificates."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, Protocol

from gpugate.webhook.cluster.clock_skew import wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable


class Skewed(Protocol):
    """What knows how far the API server's clock is from ours; a new object each time it was measured."""

    @property
    def clock_skew(self) -> dt.timedelta | None:
        """The API server's clock minus ours, None if it never answered."""


def awake_or_asleep() -> float:
    """Return seconds of a clock that nobody sets, and that goes on while a machine is suspended."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class ServerClock:
    """Tells the API server's time: as it was told last, and gone on since by a clock that does not jump.

    Before it was told, our own clock has to do.
    """

    def __init__(
        self,
        skewed: Skewed,
        wall: Callable[[], dt.datetime] = wall_clock,
        steady: Callable[[], float] = awake_or_asleep,
    ) -> None:
        self._skewed = skewed
        self._wall = wall
        self._steady = steady
        self._measured: dt.timedelta | None = None
        self._told = wall()
        self._told_at = steady()

    def __call__(self) -> dt.datetime:
        """Return the time in UTC."""
        measured = self._skewed.clock_skew
        if measured is None:
            return self._wall()
        if measured is not self._measured:
            self._measured, self._told, self._told_at = measured, self._wall() + measured, self._steady()
        return self._told + dt.timedelta(seconds=self._steady() - self._told_at)
