"""How much a worker has taken on: bytes that it holds, and requests that wait their turn."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from gpugate.webhook.admission.front.patience import Patience

if TYPE_CHECKING:
    import asyncio

    from gpugate.webhook.admission.front.limits import Limits

# How slowly the mean follows: one review among so many.
_MEMORY: Final = 32
# How much work is done before the event loop looks at sockets again, in seconds; one request, if that takes longer.
_TURN_SECONDS: Final = 0.002
# What a review takes until one was measured, in seconds.
_FIRST_GUESS: Final = 0.0005


class Load:
    """The load of one worker, which answers one request at a time."""

    def __init__(self, limits: Limits) -> None:
        self._most_bytes = limits.in_flight
        self._most_seconds = limits.waiting
        self.patience = Patience(limits)
        self.mean = _FIRST_GUESS
        self.body_bytes = 0
        self.waiting = 0

    def take(self, size: int) -> bool:
        """Account for so many bytes of a body; False when there is no room for them."""
        if self.body_bytes + size > self._most_bytes:
            return False
        self.body_bytes += size
        return True

    def give_back(self, size: int) -> None:
        """Forget so many bytes."""
        self.body_bytes -= size

    @property
    def is_full(self) -> bool:
        """Whether the requests that wait are more work than may wait."""
        return self.waiting * self.mean > self._most_seconds

    def is_late(self, waited: float) -> bool:
        """Tell whether a request has waited longer than any should, in seconds."""
        return waited > self._most_seconds

    def took(self, seconds: float) -> None:
        """Learn what one request took."""
        self.mean += (seconds - self.mean) / _MEMORY


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
