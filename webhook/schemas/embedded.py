"""Whole objects within an object, which need `apiVersion`, `kind` and well-formed `metadata`.

Source: apiextensions-apiserver v0.36 `pkg/apiserver/schema/objectmeta/validation.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpugate.policies.sdk import dns_names
from gpugate.webhook.schemas import metadata
from gpugate.webhook.schemas.problem import Fault, SchemaProblem
from gpugate.webhook.schemas.reach import leading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.schemas.table import Node


class Embedded:
    """Looks at those in objects of one table."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._leading = leading(nodes, lambda node: node.embedded)

    def faults(self, value: Any, place: int, path: Path = ()) -> Iterator[Fault]:
        """Yield what is wrong with the objects that are embedded in a value."""
        if place not in self._leading:
            return
        node = self._nodes[place]
        if isinstance(value, dict):
            if node.embedded:
                yield from _object(value, path)
            for key, member in value.items():
                child = node.properties.get(key, node.values)
                if child is not None:
                    yield from self.faults(member, child, (*path, key))
        elif isinstance(value, list) and node.items is not None:
            for index, element in enumerate(value):
                yield from self.faults(element, node.items, (*path, index))


def _object(value: dict[str, Any], path: Path) -> Iterator[Fault]:
    for key in ("apiVersion", "kind"):
        at, text = (*path, key), value.get(key)
        if key not in value:
            yield Fault(
                SchemaProblem(at, f"{key} is missing, which must be there", f"write {key}"), path, blocking=True
            )
        elif not isinstance(text, str):
            yield Fault(SchemaProblem(at, "must be a string", f"write {key}"), path)
        elif not text or (key == "kind" and not dns_names.is_label(text.lower())) or text.count("/") > 1:
            yield Fault(SchemaProblem(at, f'"{text[:80]}" is no {key}', "write it as in apps/v1, Deployment"), path)
    yield from metadata.faults(value.get("metadata"), (*path, "metadata"), root=False, namespaced=False)
