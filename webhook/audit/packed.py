"""Objects that wait to be judged, small: a tenth of their JSON, a fiftieth of what they take decoded."""

from __future__ import annotations

import zlib
from collections import deque
from typing import TYPE_CHECKING

import orjson

from gpugate.webhook.audit.sources.source import Stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.objects import GroupVersionKind


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
