"""How long a review waits for a fact that may be known in a moment, and how many may wait at once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.admission.front.limits import Limits

# A watch brings news within some 10 ms; of those that come at all most are there by the second look.
_FIRST_PAUSE: Final = 0.01
# What must be left of the time to judge once more and answer, in seconds.
_LEAST: Final = 0.5


class Patience:
    """The patience of one worker: who waits holds a request and its body, so not everybody may."""

    def __init__(self, limits: Limits) -> None:
        self._most_seconds = limits.late_facts
        self._most_waiting = limits.awaiting_facts
        self._waiting = 0

    def pauses(self) -> Iterator[float]:
        """Yield how long to wait before each further look, in seconds: longer each time, and no longer than allowed."""
        left, pause = self._most_seconds, _FIRST_PAUSE
        while left > 0:
            yield min(pause, left)
            left -= pause
            pause *= 2

    def allows(self, seconds_left: float) -> bool:
        """Tell whether one more review may wait, which has so much time left."""
        return self._waiting < self._most_waiting and seconds_left > _LEAST

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count one that waits."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
