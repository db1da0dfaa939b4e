"""How much of what should have been looked at was: by kinds, because of a kind that nobody may list nothing is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class _Kind:
    called: int = 0
    skipped: int = 0
    read: float = 1.0


@dataclass(slots=True)
class Coverage:
    """Counts while objects are read and judged; a kind is named as RBAC names it, such as `pods`."""

    _kinds: dict[str, _Kind] = field(default_factory=dict)

    def wanted(self, kind: str) -> None:
        """Say that rules judge a kind, or look it up, and that it is served."""
        self._kinds.setdefault(kind, _Kind())

    def missed(self, kind: str, read: int, left: int | None) -> None:
        """Say that not all objects of a kind could be read: how many were, and how many were not if that is known."""
        self._kinds.setdefault(kind, _Kind()).read = read / (read + left) if left and read else 0.0

    def judged(self, kind: str, called: int, skipped: int) -> None:
        """Say how many policies were called on objects of a kind, and how many of them could not look."""
        counted = self._kinds.setdefault(kind, _Kind())
        counted.called += called
        counted.skipped += skipped

    @property
    def share(self) -> float:
        """The share that was evaluated, from 0 to 1: the mean over the kinds, each with the same weight.

        Of a kind it is the share of its objects that were read, times the share of the judgements of these that could
        be made. A list that broke off counts nothing, unless the server said how many objects were to come.
        """
        return sum(self._shares.values()) / len(self._kinds) if self._kinds else 1.0

    @property
    def _shares(self) -> Mapping[str, float]:
        return {
            name: kind.read * (1 - kind.skipped / kind.called if kind.called else 1.0)
            for name, kind in self._kinds.items()
        }
