"""Collects nodes, each kept once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from gpugate.webhook.schemas.table import Node


class Nodes:
    """The nodes of a table that is being made; a node comes after those it names."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._nodes: list[Node] = []

    def add(self, node: Node) -> int:
        """Return the place of a node, which is that of an equal one where there is any."""
        key = msgspec.json.encode(node)
        if key not in self._places:
            self._places[key] = len(self._nodes)
            self._nodes.append(node)
        return self._places[key]

    def all(self) -> tuple[Node, ...]:
        """Return them in their places."""
        return tuple(self._nodes)
