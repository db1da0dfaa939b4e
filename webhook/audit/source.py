"""The sources of an audit, and the packing of objects that wait for evaluation."""

from __future__ import annotations

import zlib
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.objects import GroupVersionKind, Kind
    from gpugate.webhook.audit.model import Cluster, NotEvaluated

Object = dict[str, Any]  # Any: the JSON edge


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored object, and its type, which items of lists do not contain."""

    kind: GroupVersionKind
    object: Object


class NotReadError(Exception):
    """Not all objects of a kind could be read; the message has the reason.

    Attributes:
        left: the number of missing objects; None if unknown.
        absent: whether the cluster does not serve the kind, so that no object is missing.
        namespaces: the namespaces that were read completely.
    """

    def __init__(
        self, reason: str, *, left: int | None = None, absent: bool = False, namespaces: Sequence[str] = ()
    ) -> None:
        super().__init__(reason)
        self.left = left
        self.absent = absent
        self.namespaces = tuple(namespaces)


class Source(Protocol):
    """A cluster or a dump; each kind is read once."""

    @property
    def cluster(self) -> Cluster:
        """The audited cluster."""
        ...

    @property
    def absence(self) -> str:
        """Why an absent kind has no objects."""
        ...

    def read(self, kind: Kind) -> Iterator[Stored]:
        """Yield the objects of a kind, in one of its versions.

        Raises:
            NotReadError: not all of them can be read.
        """
        ...

    def find(self, api_version: str, name: str) -> Kind:
        """Return the kind of an owner reference.

        Raises:
            NotReadError: the kind is unknown.
        """
        ...

    def fetch(self, kind: Kind, namespace: str, name: str) -> Stored | None:
        """Return the current state of an object whose kind was read before; None if it does not exist.

        Raises:
            NotReadError: it cannot be read.
        """
        ...

    def trouble(self) -> Sequence[NotEvaluated]:
        """Return unreadable parts that are not whole kinds, such as invalid documents."""
        ...


class Packed:
    """Objects in the order in which they were added."""

    def __init__(self) -> None:
        self._packed: deque[tuple[GroupVersionKind, bytes]] = deque()

    def __len__(self) -> int:
        return len(self._packed)

    def add(self, stored: Stored) -> None:
        """Keep an object."""
        self._packed.append((stored.kind, zlib.compress(orjson.dumps(stored.object), 1)))

    def __iter__(self) -> Iterator[Stored]:
        """Yield the objects and keep them."""
        for kind, data in self._packed:
            yield Stored(kind, orjson.loads(zlib.decompress(data)))

    def drain(self) -> Iterator[Stored]:
        """Yield the objects and remove them."""
        while self._packed:
            kind, data = self._packed.popleft()
            yield Stored(kind, orjson.loads(zlib.decompress(data)))
