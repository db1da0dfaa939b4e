"""Takes unknown fields and nulls away and fills in defaults, in the API server's order.

Sources: apiextensions-apiserver v0.36 `pkg/apiserver/schema/pruning/algorithm.go`,
`pkg/apiserver/schema/defaulting/{prunenulls,algorithm}.go`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.schemas import wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.schemas.problem import SchemaProblem
    from gpugate.webhook.schemas.table import Node

HEAD: Final = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, slots=True)
class Coerced:
    """An object as it would be validated, the unknown fields that were in it, and the fields that were meant by them."""

    value: Any
    unknown: list[SchemaProblem]
    meant: set[Path]


def coerced(value: Any, place: int, nodes: Sequence[Node]) -> Coerced:
    """Return an object as it would be validated; it itself is left as it is."""
    unknown: list[SchemaProblem] = []
    meant: set[Path] = set()
    return Coerced(_Coercion(nodes, unknown, meant).of(value, place, (), root=True), unknown, meant)


class _Coercion:
    def __init__(self, nodes: Sequence[Node], unknown: list[SchemaProblem], meant: set[Path]) -> None:
        self._nodes = nodes
        self._unknown = unknown
        self._meant = meant

    def of(self, value: Any, place: int, path: Path, *, root: bool = False) -> Any:
        node = self._nodes[place]
        if isinstance(value, dict):
            return self._object(value, node, path, root=root)
        if isinstance(value, list) and node.items is not None:
            items = node.items
            return [self.of(each, items, (*path, index)) for index, each in enumerate(value)]
        return value

    def _object(self, value: dict[str, Any], node: Node, path: Path, *, root: bool) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, member in value.items():
            child = node.properties.get(key, node.values)
            if (root or node.embedded) and key in HEAD:
                out[key] = member
            elif child is not None:
                if member is not None or self._nodes[child].nullable:
                    out[key] = self.of(member, child, (*path, key))
            elif node.preserve:
                out[key] = member
            else:
                problem, near = wording.unknown((*path, key), node)
                self._unknown.append(problem)
                self._meant.add((*path, near))
        for key, default in node.defaults.items():
            if key not in out:
                out[key] = self.of(default, node.properties[key], (*path, key))
        return out
