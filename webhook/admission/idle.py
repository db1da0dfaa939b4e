"""Work of a worker that waits until it has no request: bounded, and dropped first under load.

Work delays at most the requests that arrive during one piece of it. While requests come one after the other, work takes a fortieth
of the time, and what does not fit into the queue is dropped.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from gpugate.webhook.admission.front.load import Load

T = TypeVar("T")

# A decoded review takes about fifty times its bytes. A larger one waits alone.
_MOST_WAITING: Final = 256
_MOST_BYTES: Final = 1024 * 1024
# The pause before the queue is looked at, and looked at again while the worker has requests.
_PAUSE_SECONDS: Final = 0.002
# A worker pauses for so many times the duration of each piece of work while reviews come, and after this time without one. On a node
# without free CPU, the clients pause too, and a queue at once would take the time of their next reviews.
_QUIET_SECONDS: Final = 0.1
_PAUSES: Final = 40
_QUIET_PAUSES: Final = 4


class IdleQueue(Generic[T]):
    """Calls `work` with each item, one at a time, while the load of an event loop is idle."""

    def __init__(self, work: Callable[[T], None]) -> None:
        self._work = work
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._is_scheduled = False
        # Times of the loop: of the last review, and of the end of the last work, which took so many seconds.
        self._offered = self._ended = self._took = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._load: Load | None = None

    def attach(self, loop: asyncio.AbstractEventLoop, load: Load) -> None:
        """Work in an event loop while its load is idle."""
        self._loop = loop
        self._load = load

    @property
    def is_attached(self) -> bool:
        """Whether there is a loop in which to work."""
        return self._loop is not None

    def note_review(self) -> None:
        """Pause longer, because reviews come."""
        if self._loop is not None:
            self._offered = self._loop.time()

    def admits(self, size: int) -> bool:
        """Tell whether the queue has room for an item of so many bytes; one larger than the queue waits alone."""
        return not self._items or (len(self._items) < _MOST_WAITING and self._bytes + size <= _MOST_BYTES)

    def put(self, item: T, size: int) -> None:
        """Queue an item that the queue admits."""
        assert self._loop is not None  # noqa: S101 -- for the type checker: `attach` comes first
        self._items.append((item, size))
        self._bytes += size
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_later(_PAUSE_SECONDS, self._turn)

    def _turn(self) -> None:
        """Do one piece of work, if no request waits."""
        loop, load = self._loop, self._load
        assert loop is not None  # noqa: S101 -- for the type checker: `attach` comes first
        assert load is not None  # noqa: S101 -- as above
        now = loop.time()
        quiet = max(self._offered + _QUIET_SECONDS, self._ended + _QUIET_PAUSES * self._took)
        may_resume = min(self._ended + _PAUSES * self._took, quiet)
        if load.waiting or now < may_resume:
            loop.call_later(max(_PAUSE_SECONDS, may_resume - now), self._turn)
            return
        if self._items:
            item, size = self._items.popleft()
            self._bytes -= size
            started = perf_counter()
            self._work(item)
            self._took = perf_counter() - started
            self._ended = loop.time()
        if self._items:
            # The loop reads requests before this call, and the load shows them.
            loop.call_soon(self._turn)
        else:
            self._is_scheduled = False
