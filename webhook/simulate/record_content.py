"""What a record of a server contains: its reviews as requests, and the cluster data of their time."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.sdk.facts import NoFacts, Unavailable
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.record_file import (
    Damaged,
    FactsEnd,
    FactsObject,
    FactsOfKind,
    is_snapshot,
    read_lines,
    start_of,
)
from gpugate.webhook.cluster.objects import Objects, StoredField, decode

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from gpugate.policies.sdk.facts import Fact, Facts
    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.admission.record_file import Recorded

_SNAPSHOTS: Final = 2
_NO_FACTS: Final = NoFacts()


class RecordedFacts:
    """The cluster data of a snapshot."""

    def __init__(self, kinds: Mapping[tuple[str, str], Objects | Unavailable]) -> None:
        self._kinds = kinds

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        """Return the recorded objects of a kind."""
        objects = self._kinds.get((kind.group, kind.name))
        if isinstance(objects, Objects):
            return objects.list(namespace)
        return objects or Unavailable(f"the record contains no {kind.plural}")


def read_snapshot(path: Path) -> RecordedFacts | None:
    """Read a snapshot; None if it is not complete.

    Raises:
        OSError: the file cannot be read.
    """
    kinds: dict[tuple[str, str], list[StoredField] | Unavailable] = {}
    objects: list[StoredField] = []
    cached = lru_cache(1024)(decode)
    for line in read_lines(path):
        if isinstance(line, FactsOfKind):
            objects = []
            kinds[line.group, line.kind] = Unavailable(line.unavailable) if line.unavailable else objects
        elif isinstance(line, FactsObject):
            metadata = Field(line.object)["metadata"]
            packed = msgspec.msgpack.encode(line.object)
            objects.append(StoredField(packed, b"", metadata["name"].text, metadata["namespace"].text, cached))
        elif isinstance(line, FactsEnd):
            return RecordedFacts(
                {key: fact if isinstance(fact, Unavailable) else Objects.of(fact) for key, fact in kinds.items()}
            )
        elif isinstance(line, Damaged):
            return None
    return None


class Snapshots:
    """The snapshots of a record by time; only the last that were used are in memory."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = sorted((file for file in files if is_snapshot(file)), key=start_of)
        self._starts = [start_of(file) for file in self._files]
        self._read = lru_cache(_SNAPSHOTS)(read_snapshot)

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self._files)

    def at(self, time: dt.datetime) -> Facts:
        """Return the last complete snapshot before a time, else the first one after it."""
        position = bisect_right(self._starts, time)
        return self._first((*reversed(self._files[:position]), *self._files[position:])) or _NO_FACTS

    @property
    def last(self) -> Facts | None:
        """The last complete snapshot, if any."""
        return self._first(reversed(self._files))

    def _first(self, files: Iterable[Path]) -> Facts | None:
        return next((facts for file in files if (facts := self._read(file)) is not None), None)


def request_of(line: Recorded) -> Request:
    """Return the request of a recorded review, without what may be secret."""
    return Request(
        kind=GroupVersionKind(*line.kind),
        operation=Operation(line.operation),
        object=line.object,
        old_object=line.old_object,
        subresource=line.subresource,
        parent=GroupVersionKind(*line.parent) if line.parent else None,
        name=line.name,
        generate_name=line.generate_name,
        namespace=line.namespace,
        user=line.user,
        groups=line.groups,
    )


def phase_of(line: Recorded) -> Phase:
    """Return the phase of admission in which a review was recorded."""
    return Phase.MUTATE if line.phase == "mutate" else Phase.VALIDATE
