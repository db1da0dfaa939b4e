"""Finds elements that lists of type `set` and `map` have twice.

Source: apiextensions-apiserver v0.36 `pkg/apiserver/schema/listtype/validation.go`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.schemas import wording
from gpugate.webhook.schemas.problem import Fault
from gpugate.webhook.schemas.reach import leading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.schemas.table import Node

_KEYED: Final = frozenset({"set", "map"})


class Uniqueness:
    """Finds them in objects of one table."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._keyed = leading(nodes, lambda node: node.list_type in _KEYED)

    def faults(self, value: Any, place: int, path: Path = ()) -> Iterator[Fault]:
        """Yield the second of each element that is there more than once, in a value and what is in it."""
        node = self._nodes[place]
        if isinstance(value, dict):
            for key, member in value.items():
                child = node.properties.get(key, node.values)
                if child is not None and child in self._keyed:
                    yield from self.faults(member, child, (*path, key))
        elif isinstance(value, list):
            if node.list_type in _KEYED and len(value) > 1:
                yield from _doubles(value, node, path)
            if node.items is not None and node.items in self._keyed:
                for index, element in enumerate(value):
                    yield from self.faults(element, node.items, (*path, index))


def _doubles(value: list[Any], node: Node, path: Path) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for index, element in enumerate(value):
        key = json.dumps(_key(element, node), sort_keys=True)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            yield Fault(wording.repeated((*path, index), node.list_keys), path)


def _key(element: Any, node: Node) -> Any:
    if node.list_type == "set":
        return element
    return {key: element[key] for key in node.list_keys if key in element} if isinstance(element, dict) else element
