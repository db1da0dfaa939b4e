"""Whole numbers where the schema says `number`: rules compute with them as with 64-bit floating point numbers.

Source: apiserver v0.36 `pkg/cel/common/values.go`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from gpugate.webhook.schemas.reach import leading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.webhook.schemas.table import Node


class Doubles:
    """Makes them in objects of one table."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._leading = leading(nodes, lambda node: node.type == "number")

    def of(self, value: Any, place: int) -> Any:
        """Return a value as rules see it; it itself is left as it is."""
        if place not in self._leading:
            return value
        node = self._nodes[place]
        if isinstance(value, dict):
            children = {key: node.properties.get(key, node.values) for key in value}
            return {
                key: member if (child := children[key]) is None else self.of(member, child)
                for key, member in value.items()
            }
        if isinstance(value, list) and node.items is not None:
            items = node.items
            return [self.of(element, items) for element in value]
        if node.type == "number" and isinstance(value, int) and not isinstance(value, bool):
            with contextlib.suppress(OverflowError):
                return float(value)
        return value
