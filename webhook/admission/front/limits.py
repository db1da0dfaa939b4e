"""Limits for clients: connections, sizes and times, and which limits were exceeded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Final

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one worker.

    Seconds: `handshake` from accept to the end of the TLS handshake; `header` from the first byte of a request (of the
    first one: from the handshake) to the end of its head; `body` from there to its end; `write` until the client has
    taken an answer; `keep_alive` between requests, longer than the 90 s for which the API server keeps a connection
    (Go 1.26 net/http DefaultTransport); `waiting` is how much work may queue before more is turned away; `late_facts`
    is how long a review waits until its worker hears of what made a Pod; `body_grace` is how long an unfinished body is
    safe from newer ones that need its room.

    Bytes: `url`, `header_line` (name and value), `head` (all of them), `in_flight` (bodies of all requests).

    Counts: `headers` of a request; `awaiting_facts`, reviews that wait so; `connections` in all, and `per_source`, of
    one address. An API server keeps 25 idle connections (client-go v0.36 transport; seen with v1.36.3), and all of
    them may come from one address.
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
    awaiting_facts: int = 256
    in_flight: int = 64 * _MIB
    connections: int = 4096
    per_source: int = 512


class FrontEvent(Enum):
    """Something that happened to a connection or a request before, or instead of, its being judged."""

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
    AWAITED_FACTS = "awaited_facts"


class Place:
    """The place of one connection among those that are allowed; given back once, however often that is asked."""

    __slots__ = ("_connections", "_source")

    def __init__(self, connections: Connections, source: str) -> None:
        self._connections: Connections | None = connections
        self._source = source

    def release(self) -> None:
        """Give the place back."""
        if self._connections is not None:
            self._connections.leave(self._source)
            self._connections = None


class Connections:
    """How many connections there are, against how many there may be."""

    def __init__(self, most: int, most_per_source: int) -> None:
        self._most = most
        self._most_per_source = most_per_source
        self._by_source: Counter[str] = Counter()
        self.open = 0

    def enter(self, source: str) -> Place | FrontEvent:
        """Take a place for a connection from an address, or say which bound is met."""
        if self.open >= self._most:
            return FrontEvent.REFUSED_TOTAL
        if self._by_source[source] >= self._most_per_source:
            return FrontEvent.REFUSED_SOURCE
        self.open += 1
        self._by_source[source] += 1
        return Place(self, source)

    def leave(self, source: str) -> None:
        """Free a place; addresses without connections are forgotten."""
        self.open -= 1
        self._by_source[source] -= 1
        if not self._by_source[source]:
            del self._by_source[source]
