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
    from gpugate.webhook.report.audited import Cluster, NotEvaluated

Object = dict[str, Any]  # Any: the JSON edge


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it is stored, and its type, which items of lists do not say."""

    kind: GroupVersionKind
    object: Object


class NotReadError(Exception):
    """Objects of a kind could not be read, or not all; the text says why.

    Attributes:
        left: how many are missing, None where nobody knows.
        absent: the cluster does not serve the kind, so that nothing of it can be missing.
        namespaces: where everything was read nevertheless.
    """

    def __init__(
        self, reason: str, *, left: int | None = None, absent: bool = False, namespaces: Sequence[str] = ()
    ) -> None:
        super().__init__(reason)
        self.left = left
        self.absent = absent
        self.namespaces = tuple(namespaces)


class Source(Protocol):
    """Where objects are read; each kind once."""

    @property
    def cluster(self) -> Cluster:
        """What is looked at."""
        ...

    @property
    def absence(self) -> str:
        """Why there is nothing of a kind that is absent."""
        ...

    def read(self, kind: Kind) -> Iterator[Stored]:
        """Yield the objects of a kind, in one of its versions.

        Raises:
            NotReadError: they cannot be read, or no more of them.
        """
        ...

    def find(self, api_version: str, name: str) -> Kind:
        """Return the kind that an object names as that of its owner.

        Raises:
            NotReadError: it is not known here.
        """
        ...

    def one(self, kind: Kind, namespace: str, name: str) -> Stored | None:
        """Return one object of a kind that was read before, as it is now; None when it is not there.

        Raises:
            NotReadError: it cannot be read.
        """
        ...

    def trouble(self) -> Sequence[NotEvaluated]:
        """Return what could not be read beside whole kinds, such as broken documents."""
        ...


class Packed:
    """Objects in the order in which they were added."""

    def __init__(self) -> None:
        self._held: deque[tuple[GroupVersionKind, bytes]] = deque()

    def __len__(self) -> int:
        return len(self._held)

    def add(self, stored: Stored) -> None:
        """Keep an object."""
        self._held.append((stored.kind, zlib.compress(orjson.dumps(stored.object), 1)))

    def __iter__(self) -> Iterator[Stored]:
        """Yield the objects; they stay."""
        for kind, data in self._held:
            yield Stored(kind, orjson.loads(zlib.decompress(data)))

    def drain(self) -> Iterator[Stored]:
        """Yield the objects, and forget each one."""
        while self._held:
            kind, data = self._held.popleft()
            yield Stored(kind, orjson.loads(zlib.decompress(data)))
