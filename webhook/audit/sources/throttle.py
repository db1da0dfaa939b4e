"""Keeps calls to an API server within a rate: a token bucket, as client-go has it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Throttle:
    """Lets `burst` calls through at once and then `qps` a second, counted by a clock that never goes back."""

    def __init__(
        self,
        qps: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._qps = qps
        self._burst = float(burst)
        self._clock = clock
        self.sleep = sleep
        self._left = float(burst)
        self._at = clock()

    def wait(self) -> None:
        """Wait until another call may be made."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._qps) - 1
        self._at = now
        if self._left < 0:
            self.sleep(-self._left / self._qps)
