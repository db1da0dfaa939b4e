"""The bodies that a worker holds, against how much it may hold, and which one gives way when there is no more room."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.admission.front.limits import Limits


class Body:
    """One body that is accounted for, as far as it has come.

    Attributes:
        content: what has come; empty once it had to give way. It grows in one block, which is returned to the kernel whole:
            parts of it, between what other requests allocate, would leave the heap in pieces.
        evicted: whether it had to give way to another body. Its sender is told to call again.
    """

    __slots__ = ("content", "evicted", "since", "size", "source")

    def __init__(self, source: str, since: float) -> None:
        self.source = source
        self.since = since
        self.content = bytearray()
        self.size = 0
        self.evicted = False


class Bodies:
    """What one worker holds of bodies, by the address that each comes from.

    A body takes what room there is. When there is no room left, unfinished bodies give way, the oldest first:

    - to a body from any other source, those of a source that holds more than half of all there is;
    - to a newer body, those that have been coming for longer than `Limits.body_grace`.

    So clients that hold bodies back keep neither other sources out, nor, for longer than that, their own. A source is
    not held to its half while there is room: behind a proxy all API servers may be one source.
    """

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        """Make an account.

        Args:
            limits: how much may be held, and for how long a body is left alone.
            now: the time in seconds, of a clock that nobody sets.
        """
        self._most = limits.in_flight
        self._grace = limits.body_grace
        self._now = now
        self._by_source: Counter[str] = Counter()
        # In the order in which they began.
        self._unfinished: dict[Body, None] = {}
        self.bytes = 0

    def begin(self, source: str) -> Body:
        """Begin to account for a body from an address."""
        body = Body(source, self._now())
        self._unfinished[body] = None
        return body

    def take(self, body: Body, part: bytes) -> bool:
        """Keep a part of a body; False when there is no room for it, or the body had to give way."""
        size = len(part)
        while not body.evicted and self.bytes + size > self._most:
            yielding = self._yielding(body)
            if yielding is None:
                return False
            self._forget(yielding)
            yielding.evicted = True
        if body.evicted:
            return False
        body.content += part
        body.size += size
        self.bytes += size
        self._by_source[body.source] += size
        return True

    def finish(self, body: Body) -> bytes:
        """Return a body of which the last part was taken; until `end` it is accounted for, and never gives way."""
        self._unfinished.pop(body, None)
        content, body.content = body.content, bytearray()
        return bytes(content)

    def end(self, body: Body) -> None:
        """Forget a body: it was answered, or its client has gone."""
        self._forget(body)

    def _yielding(self, body: Body) -> Body | None:
        """Return the unfinished body that gives way to this one; None if there is none."""
        half, expired = self._most / 2, self._now() - self._grace
        for other in self._unfinished:
            if other.source != body.source and self._by_source[other.source] > half:
                return other
        # Those that follow the oldest are no older.
        oldest = next(iter(self._unfinished), body)
        return oldest if oldest is not body and oldest.since <= expired else None

    def _forget(self, body: Body) -> None:
        self._unfinished.pop(body, None)
        body.content = bytearray()
        self.bytes -= body.size
        self._by_source[body.source] -= body.size
        if not self._by_source[body.source]:
            del self._by_source[body.source]
        body.size = 0
