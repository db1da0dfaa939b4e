"""Compute how long to wait before a failed call is repeated."""

from __future__ import annotations

import random as random_module
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Chance:
    """A monotonic clock in seconds, and random numbers from 0 to 1; tests replace both."""

    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random_module.random

    def between(self, bounds: tuple[float, float]) -> float:
        """Return a random number within bounds."""
        low, high = bounds
        return low + (high - low) * self.random()


# The backoff of client-go's reflectors (k8s.io/client-go tools/cache/reflector.go, v0.36): 0.8 to 1.6 s at first, doubled
# with each failure, reset after two minutes without one. The maximum of client-go is 30 to 60 s, ours is 15 to 30 s.
_INITIAL_WAIT: Final = (0.8, 1.6)
_MAX_WAIT: Final = (15.0, 30.0)
_RESET_AFTER: Final = 120.0


class Backoff:
    """A wait that doubles with each consecutive failure."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._bounds = _INITIAL_WAIT
        self._reset_at = float("-inf")

    def next(self) -> float:
        """Return how many seconds to wait after this failure."""
        now = self._chance.clock()
        if now > self._reset_at:
            self._bounds = _INITIAL_WAIT
        wait = self._chance.between(self._bounds)
        low, high = self._bounds
        self._bounds = min((low * 2, high * 2), _MAX_WAIT)
        self._reset_at = now + wait + _RESET_AFTER
        return wait
