"""The events of a watch, read from its lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from gpugate.webhook.cluster.errors import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.cluster.stream import Stream

PUT: Final = frozenset({"ADDED", "MODIFIED"})
DELETED: Final = "DELETED"


@dataclass(frozen=True, slots=True)
class Event:
    """A change of one object, or a BOOKMARK that only says how far the watch has come (`revision`)."""

    type: str
    object: dict[str, Any]
    revision: str


def events(stream: Stream) -> Iterator[Event]:
    """Yield the events of a watch.

    Raises:
        ApiError: the server ended the watch with an ERROR event; its object is a Status.
        UnreachableError: the watch broke off, or a line is no event.
    """
    for line in stream.lines():
        try:
            written = orjson.loads(line)
            type_, obj = written["type"], written["object"]
            revision = "" if type_ == "ERROR" else obj["metadata"]["resourceVersion"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise UnreachableError("a line of the watch is no event") from None
        if type_ == "ERROR":
            raise ApiError.of(obj)
        yield Event(type_, obj, revision)
