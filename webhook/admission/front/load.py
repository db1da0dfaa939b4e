"""The load of a worker: queued requests, the expected wait, and the bodies in memory."""

from __future__ import annotations

import fcntl
import gc
import os
from collections import deque
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Final

from gpugate.webhook.admission.front.bodies import Bodies

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator
    from pathlib import Path

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


# How slowly the mean follows: one review among so many.
_MEMORY: Final = 32
# The most that one request counts for, in seconds: a hundred times what a review takes. Where many take longer, requests
# are turned away by the time that they have waited.
_MOST_LEARNED: Final = 0.1
# How much work is done before the event loop looks at sockets again, in seconds; one request, if that takes longer.
_TURN_SECONDS: Final = 0.002
# What a review takes until one was measured, in seconds.
_FIRST_GUESS: Final = 0.0005
# After so many bytes of bodies everything is collected. Python counts objects, of which a large body may be only one, so
# that what hostile bodies leave in cycles could fill the memory long before a collection. A collection takes some 10 ms.
_COLLECT_AFTER: Final = 64 * 1024 * 1024


class Load:
    """The load of one worker, which answers one request at a time."""

    def __init__(self, limits: Limits) -> None:
        self._most_seconds = limits.waiting
        self.patience = Patience(limits)
        self.mean = _FIRST_GUESS
        self._uncollected = 0
        self.bodies = Bodies(limits, monotonic)
        self.waiting = 0

    @property
    def is_full(self) -> bool:
        """Whether the requests that wait are more work than may wait."""
        return self.waiting * self.mean > self._most_seconds

    def is_late(self, waited: float) -> bool:
        """Tell whether a request has waited longer than any should, in seconds."""
        return waited > self._most_seconds

    def answered(self, size: int) -> None:
        """Learn that a body of so many bytes is not needed any more."""
        self._uncollected += size
        if self._uncollected >= _COLLECT_AFTER:
            self._uncollected = 0
            gc.collect()

    def took(self, seconds: float) -> None:
        """Learn what one request took; one that took very long counts as `_MOST_LEARNED`.

        Otherwise one review of half a minute would turn requests away for hundreds of reviews after it.
        """
        self.mean += (min(seconds, _MOST_LEARNED) - self.mean) / _MEMORY


class Turns:
    """Lets requests go on one after the other, some in each turn of the event loop.

    Between two turns the loop takes up connections and reads what came, so that the load is seen as it is, and what
    is too much can be turned away.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, load: Load) -> None:
        self._loop = loop
        self._load = load
        self._queue: deque[asyncio.Future[None]] = deque()
        self._left = 1
        self._counting = False

    def now(self) -> float:
        """Return the loop's time, in seconds."""
        return self._loop.time()

    async def take(self) -> None:
        """Wait for a turn; first come, first served."""
        if self._queue or not self._left:
            turn = self._loop.create_future()
            self._queue.append(turn)
            await turn
            return
        self._left -= 1
        if not self._counting:
            self._counting = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        self._left = max(1, int(_TURN_SECONDS / self._load.mean))
        self._counting = bool(self._queue)
        if self._counting:
            self._loop.call_soon(self._next)
        while self._queue and self._left:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1


class LargeReviews:
    """Lets one worker at a time evaluate a large review, so that large reviews never occupy all workers.

    The lock belongs to the process (POSIX record locks, fcntl(2)): the kernel releases it when a worker dies.
    """

    def __init__(self, path: Path) -> None:
        """Create the lock file; call it before the workers are forked, which inherit the descriptor."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Try to take the turn for one review; yields False if another worker has it."""
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        try:
            yield True
        finally:
            with suppress(OSError):
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
