"""The load of a worker: queued requests, the expected wait, and the bodies in memory."""

from __future__ import annotations

import gc
from collections import deque
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

from gpugate.webhook.admission.front.bodies import Bodies

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from gpugate.webhook.admission.front.limits import Limits

# In seconds. A watch reports a change within about 10 ms, so most changes arrive before the second evaluation.
_FIRST_PAUSE: Final = 0.01
# The seconds that must remain for another evaluation and the response.
_LEAST: Final = 0.5


class DataWait:
    """Limits how many reviews of a worker wait for cluster data, because each one keeps its body in memory."""

    def __init__(self, limits: Limits) -> None:
        self._most_seconds = limits.late_facts
        self._most_waiting = limits.awaiting_facts
        self._waiting = 0

    def pauses(self) -> Iterator[float]:
        """Yield the seconds to wait before each further evaluation: each pause is longer, up to the total limit."""
        remaining, pause = self._most_seconds, _FIRST_PAUSE
        while remaining > 0:
            yield min(pause, remaining)
            remaining -= pause
            pause *= 2

    def allows(self, seconds_left: float) -> bool:
        """Return whether another review may wait that has `seconds_left` for its evaluation."""
        return self._waiting < self._most_waiting and seconds_left > _LEAST

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count a waiting review."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1


# The mean is an exponential average: one review has this share, 1/32.
_MEMORY: Final = 32
# The most seconds that one request adds to the mean: a hundred times the time of a usual review. If many requests take
# longer, later requests are rejected for the time that they waited.
_MOST_LEARNED: Final = 0.1
# The seconds of work before the event loop reads sockets again; at least one request.
_TURN_SECONDS: Final = 0.002
# The assumed seconds of a review before the first measurement.
_FIRST_GUESS: Final = 0.0005
# A full collection runs after this many bytes of bodies. Python counts objects, and a large body may be a single object,
# so cycles from hostile bodies could fill the memory before Python collects. A collection takes about 10 ms.
_COLLECT_AFTER: Final = 64 * 1024 * 1024


class Load:
    """The load of one worker, which answers one request at a time."""

    def __init__(self, limits: Limits) -> None:
        self._most_seconds = limits.waiting
        self.data_wait = DataWait(limits)
        self.mean = _FIRST_GUESS
        self._uncollected = 0
        self.bodies = Bodies(limits, monotonic)
        self.waiting = 0

    @property
    def is_full(self) -> bool:
        """Whether the queued requests exceed the limit on queued work."""
        return self.waiting * self.mean > self._most_seconds

    def is_late(self, waited: float) -> bool:
        """Return whether a request has waited too long; `waited` is in seconds."""
        return waited > self._most_seconds

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """Exclude a request from the queued work while another process answers it."""
        self.waiting -= 1
        try:
            yield
        finally:
            self.waiting += 1

    def count_freed(self, size: int) -> None:
        """Count a freed body of `size` bytes, and collect garbage after many bytes."""
        self._uncollected += size
        if self._uncollected >= _COLLECT_AFTER:
            self._uncollected = 0
            gc.collect()

    def add_duration(self, seconds: float) -> None:
        """Add the duration of a request to the mean; a very long one counts as `_MOST_LEARNED`.

        Otherwise a review of half a minute would make the worker reject requests for hundreds of reviews.
        """
        self.mean += (min(seconds, _MOST_LEARNED) - self.mean) / _MEMORY


class Turns:
    """Lets requests continue in order, a few in each iteration of the event loop.

    Between two iterations the loop accepts connections and reads requests. So the measured load is current, and
    requests above the limit are rejected in time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, load: Load) -> None:
        self._loop = loop
        self._load = load
        self._queue: deque[asyncio.Future[None]] = deque()
        self._remaining = 1
        self._counting = False

    def now(self) -> float:
        """Return the loop's time, in seconds."""
        return self._loop.time()

    async def take(self) -> None:
        """Wait for a turn, in the order of the calls."""
        if self._queue or not self._remaining:
            turn = self._loop.create_future()
            self._queue.append(turn)
            await turn
            return
        self._remaining -= 1
        if not self._counting:
            self._counting = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        self._remaining = max(1, int(_TURN_SECONDS / self._load.mean))
        self._counting = bool(self._queue)
        if self._counting:
            self._loop.call_soon(self._next)
        while self._queue and self._remaining:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                self._remaining -= 1
