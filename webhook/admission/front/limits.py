"""Limits for clients: connections, sizes and times, and the events when a client exceeds one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one worker; times are in seconds and sizes in bytes.

    Attributes:
        handshake: from accept to the end of the TLS handshake.
        header: from the first byte of a request to the end of its head; for the first request from the handshake.
        body: from the end of the head to the end of the body.
        write: until the client has read a response.
        keep_alive: between requests. It is longer than the 90 s for which the API server keeps a connection
            (Go 1.26 net/http DefaultTransport).
        waiting: the queued work, in seconds, above which new requests are rejected.
        late_facts: how long a review waits for the watch to report the owner or the claim template of a Pod.
        body_grace: how long newer bodies cannot evict an unfinished body.
        url: the size of a request's target.
        header_line: the size of one header, name and value.
        head: the size of all headers of a request.
        headers: the number of headers of a request.
        pipelined: the number of requests of a connection that wait for the response to an earlier one. The API server
            sends none before it has the response; each costs 6 KiB, of which the client sends 30 bytes.
        awaiting_facts: the number of reviews that wait for cluster data.
        in_flight: the size of the bodies of all requests.
        connections: the number of connections. Each takes up to 0.3 MiB: 256 KiB are what uvloop 0.23 reads at once, and
            OpenSSL keeps some too.
        per_source: the number of connections from one address. An API server keeps 25 idle connections (client-go
            v0.36 transport; seen with v1.36.3), and all API servers may share one address.
    """

    handshake: float = 5
    header: float = 5
    body: float = 10
    write: float = 10
    keep_alive: int = 120
    waiting: float = 1
    late_facts: float = 0.5
    body_grace: float = 1
    url: int = 8 * 1024
    header_line: int = 8 * 1024
    head: int = 16 * 1024
    headers: int = 100
    pipelined: int = 16
    awaiting_facts: int = 256
    in_flight: int = 64 * _MIB
    connections: int = 512
    per_source: int = 256


class FrontEvent(Enum):
    """An event of a connection or a request before, or instead of, its evaluation."""

    ACCEPTED = "accepted"
    REFUSED_TOTAL = "refused_total"
    REFUSED_SOURCE = "refused_source"
    HANDSHAKE_FAILED = "handshake_failed"
    HANDSHAKE_TIMEOUT = "handshake_timeout"
    CLIENT_REFUSED = "client_refused"
    HEADER_TIMEOUT = "header_timeout"
    BODY_TIMEOUT = "body_timeout"
    WRITE_TIMEOUT = "write_timeout"
    BAD_REQUEST = "bad_request"
    CLIENT_GONE = "client_gone"
    SHED_BYTES = "shed_bytes"
    SHED_WORK = "shed_work"
    AWAITED_CLUSTER_DATA = "awaited_cluster_data"


_LEAST_DIFFERENCE: Final = 2


def _stays() -> bool:
    return False


class Slot:
    """One of the allowed connections; `release` takes effect once.

    Attributes:
        gives_way: closes the connection and returns True, or returns False if a request of it is being answered.
    """

    __slots__ = ("_connections", "_source", "gives_way")

    def __init__(self, connections: Connections, source: str) -> None:
        self._connections: Connections | None = connections
        self._source = source
        self.gives_way: Callable[[], bool] = _stays

    def release(self) -> None:
        """Allow another connection in place of this one; later calls do nothing."""
        if self._connections is not None:
            self._connections.leave(self, self._source)
            self._connections = None
            self.gives_way = _stays


class Connections:
    """Counts the open connections, and limits them in total and per address.

    At the limit in total, a new connection takes the place of the oldest one that can be closed of the address with the most
    connections. So clients that only hold connections open exclude no other address. An address with as many gets no place, because
    its clients would replace each other without end, unless all connections are its own.
    """

    def __init__(self, most: int, most_per_source: int) -> None:
        self._most = most
        self._most_per_source = most_per_source
        # The connections of each address, the oldest first.
        self._by_source: dict[str, dict[Slot, None]] = {}
        self.open = 0

    def enter(self, source: str, evicted: Callable[[], None]) -> Slot | FrontEvent:
        """Count a connection from an address, or return the event of the limit that it exceeds.

        Calls `evicted` if another connection was closed for it.
        """
        if self.open >= self._most:
            if not self._evict(source):
                return FrontEvent.REFUSED_TOTAL
            evicted()
        slots = self._by_source.setdefault(source, {})
        if len(slots) >= self._most_per_source:
            return FrontEvent.REFUSED_SOURCE
        slot = Slot(self, source)
        slots[slot] = None
        self.open += 1
        return slot

    def leave(self, slot: Slot, source: str) -> None:
        """Count a closed connection; addresses without connections are deleted."""
        self.open -= 1
        slots = self._by_source[source]
        del slots[slot]
        if not slots:
            del self._by_source[source]

    def _evict(self, source: str) -> bool:
        """Close a connection for a new one from `source`; return False if none can be closed."""
        own = len(self._by_source.get(source, ()))
        largest = max(self._by_source.values(), key=len)
        # A difference of one only changes sides.
        if len(largest) - own < _LEAST_DIFFERENCE and own < self._most:
            return False
        for slot in tuple(largest):
            if slot.gives_way():
                slot.release()
                return True
        return False
