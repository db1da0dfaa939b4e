"""Makes nodes of what an API server publishes of its own kinds.

Its kinds are decoded into Go's types, which is what decides: a null is nothing at all, quantities may be numbers, and
what the document calls required is often not asked for. Source: kubernetes v1.36 `api/openapi-spec/README.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.schemas.table import Node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.webhook.schemas.compile import Nodes

_REF: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECT_META: Final = f"{_META}ObjectMeta"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_FREE: Final = frozenset({"io.k8s.apimachinery.pkg.runtime.RawExtension", f"{_META}FieldsV1"})
_KNOWN: Final = frozenset(
    {"type", "format", "properties", "required", "items", "additionalProperties", "description", "default", "allOf"}
    | {"$ref", "enum", "x-kubernetes-group-version-kind", "x-kubernetes-unions"}
    | {
        f"x-kubernetes-{name}"
        for name in ("list-type", "list-map-keys", "map-type", "patch-strategy", "patch-merge-key")
    }
)


class OpenApi:
    """Adds schemas of one document to a table that is being made."""

    def __init__(self, document: Mapping[str, Any], nodes: Nodes) -> None:
        self._schemas: Mapping[str, Any] = document["components"]["schemas"]
        self._nodes = nodes

    def has(self, name: str) -> bool:
        """Tell whether there is a schema of this name."""
        return name in self._schemas

    def add(self, name: str, *, root: bool = False, spec_only: bool = False) -> int:
        """Add a schema by its name.

        Args:
            name: its name in the document.
            root: it is a whole object, whose metadata is looked at apart.
            spec_only: it is a whole object whose status may hold anything.
        """
        if name == _QUANTITY:
            return self._nodes.add(Node(quantity=True))
        if name == _INT_OR_STRING:
            return self._nodes.add(Node(int_or_string=True))
        if name in _FREE:
            return self._nodes.add(Node(type="object", preserve=True))
        schema = dict(self._schemas[name])
        if root:
            schema["properties"] = {k: v for k, v in schema["properties"].items() if k != "metadata"}
        if spec_only and "status" in schema["properties"]:
            schema["properties"] = {**schema["properties"], "status": {"$ref": _REF + next(iter(_FREE))}}
        return self._add(schema)

    def _add(self, schema: Mapping[str, Any]) -> int:
        strange = schema.keys() - _KNOWN
        if strange:
            raise GpugateError(f"{', '.join(sorted(strange))} is not known in a schema of an API server")
        named = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf") or ()), "")
        if named:
            return self.add(named.removeprefix(_REF))
        items, free = schema.get("items"), schema.get("additionalProperties")
        return self._nodes.add(
            Node(
                type=schema.get("type", ""),
                format=schema.get("format", ""),
                properties={
                    key: self._add(property_) for key, property_ in sorted((schema.get("properties") or {}).items())
                },
                values=self._add(free) if free else None,
                items=self._add(items) if items else None,
            )
        )
