"""Which places of a table lead to something, so that the others need no look."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpugate.webhook.schemas.table import Node


def leading(nodes: Sequence[Node], to: Callable[[Node], object]) -> frozenset[int]:
    """Return the places of the nodes of which something is true, and of those with one of them below.

    A node comes after those it names, so that one pass is enough.
    """
    found: set[int] = set()
    for place, node in enumerate(nodes):
        below = (*node.properties.values(), *node.all_of, node.values, node.items)
        if to(node) or any(each in found for each in below):
            found.add(place)
    return frozenset(found)
