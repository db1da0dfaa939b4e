"""What is not in our hands: the clock, and random numbers."""

from __future__ import annotations

import random as random_module
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Chance:
    """Seconds of a clock that never goes back, and random numbers from 0 to 1."""

    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random_module.random

    def between(self, bounds: tuple[float, float]) -> float:
        """Return a random number between two."""
        low, high = bounds
        return low + (high - low) * self.random()
