"""Counts connections, in all and by the address they come from, from the moment they are accepted."""

from __future__ import annotations

from collections import Counter

from gpugate.webhook.admission.front.events import FrontEvent


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
