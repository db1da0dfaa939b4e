"""The memory of a worker for request bodies: its limit, and which body is evicted when the limit is reached."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.admission.front.limits import Limits


class Body:
    """The received part of a body that counts against the limit.

    Attributes:
        content: the received bytes; empty after an eviction. It grows in one block, which is returned to the kernel as a
            whole. Separate parts between the allocations of other requests would fragment the heap.
        evicted: whether another body took its memory. The client should then retry.
    """

    __slots__ = ("content", "evicted", "since", "size", "source")

    def __init__(self, source: str, since: float) -> None:
        self.source = source
        self.since = since
        self.content = bytearray()
        self.size = 0
        self.evicted = False


class Bodies:
    """The bodies of one worker, by the address of the client (the source).

    A body takes free memory. When the limit is reached, unfinished bodies are evicted, the oldest first:

    - for a body from another source: bodies of a source that uses more than half of the limit;
    - for any newer body: bodies that are incomplete for longer than `Limits.body_grace`.

    So clients that send bodies slowly cannot block other sources, and block their own only for that time. A source may
    use more than half while memory is free, because behind a proxy all API servers may be one source.
    """

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        """Create an empty account.

        Args:
            limits: the memory limit, and how long a body cannot be evicted.
            now: returns the time of a monotonic clock in seconds.
        """
        self._most = limits.in_flight
        self._grace = limits.body_grace
        self._now = now
        self._by_source: Counter[str] = Counter()
        # Ordered by the start of each body.
        self._unfinished: dict[Body, None] = {}
        self.bytes = 0

    def begin(self, source: str) -> Body:
        """Start the account of a body from an address."""
        body = Body(source, self._now())
        self._unfinished[body] = None
        return body

    def take(self, body: Body, part: bytes) -> bool:
        """Add a part to a body; return False if the limit is reached or the body was evicted."""
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
        """Return the content of a complete body. It counts until `end`, and cannot be evicted."""
        self._unfinished.pop(body, None)
        content, body.content = body.content, bytearray()
        return bytes(content)

    def end(self, body: Body) -> None:
        """End the account of a body, after its response or when its client disconnects."""
        self._forget(body)

    def _yielding(self, body: Body) -> Body | None:
        """Return the unfinished body to evict for this one; None if there is none."""
        half, expired = self._most / 2, self._now() - self._grace
        for other in self._unfinished:
            if other.source != body.source and self._by_source[other.source] > half:
                return other
        # Only the oldest needs a check, because the others are younger.
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
