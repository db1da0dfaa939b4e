"""Makes nodes of the OpenAPI schemas in definitions of custom resources.

Source: apiextensions-apiserver v0.36 `pkg/apis/apiextensions/v1/types_jsonschema.go` and
`pkg/apiserver/schema/structural.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.errors import GpugateError
from gpugate.policies.sdk.field import render
from gpugate.webhook.schemas import typed
from gpugate.webhook.schemas.patterns import PatternError, translated
from gpugate.webhook.schemas.rules import kept, rules
from gpugate.webhook.schemas.table import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.schemas.nodes import Nodes
    from gpugate.webhook.schemas.table import Rule

_SILENT: Final = frozenset(
    {"description", "title", "example", "externalDocs", "$schema", "id", "default", "x-kubernetes-map-type"}
)
# As the definition has it -> the field of a node.
_KEPT: Final = {
    "type": "type",
    "nullable": "nullable",
    "format": "format",
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "minProperties": "min_properties",
    "maxProperties": "max_properties",
    "x-kubernetes-list-type": "list_type",
    "x-kubernetes-int-or-string": "int_or_string",
    "x-kubernetes-preserve-unknown-fields": "preserve",
    "x-kubernetes-embedded-resource": "embedded",
}
_NESTED: Final = {"allOf": "all_of", "anyOf": "any_of", "oneOf": "one_of"}
_HANDLED: Final = frozenset(
    {"properties", "additionalProperties", "items", "not", "required", "enum", "pattern"}
    | {"x-kubernetes-validations", "x-kubernetes-list-map-keys"}
)
_DEEPEST: Final = 100  # levels; the deepest of the definitions known, KEDA's ScaledJob, has 17


class DefinitionError(GpugateError):
    """A definition cannot be read: what is wrong, where, and what to do."""


class Compiler:
    """Adds the schemas of one kind to a table that is being made.

    `unchecked` is told the path of a schema, a rule or pattern of it that cannot be judged, and why. Where nobody is
    told, that is an error.
    """

    def __init__(self, nodes: Nodes, unchecked: Callable[[str, str, str], None] | None = None) -> None:
        self._nodes = nodes
        self._unchecked = unchecked

    def add(self, schema: Mapping[str, Any], path: Path = ()) -> int:
        """Add a schema and what is below it; return its place.

        Raises:
            DefinitionError: it holds what no schema of a definition may.
            CelSyntaxError, CelUnsupportedError, PatternError: a rule or a pattern cannot be judged, and nobody is told.
        """
        if not isinstance(schema, dict) or len(path) > _DEEPEST:
            raise DefinitionError(f"{render(path)}: not a schema, or deeper than {_DEEPEST} levels")
        strange = sorted(schema.keys() - _SILENT - _KEPT.keys() - _NESTED.keys() - _HANDLED)
        if strange:
            raise DefinitionError(f"{render(path)}: {', '.join(strange)} is no part of a definition's schema")
        properties = {name: self.add(each, (*path, name)) for name, each in sorted(_members(schema, path).items())}
        free, items, none_of = schema.get("additionalProperties"), schema.get("items"), schema.get("not")
        values = self.add({} if free is True else free, (*path, "*")) if isinstance(free, dict) or free else None
        nested: dict[str, Any] = {
            name: tuple(self.add(each, path) for each in schema.get(key) or ())
            for key, name in _NESTED.items()
            # What an int-or-string may be stands beside the word once more.
            if not (key == "anyOf" and schema.get("x-kubernetes-int-or-string"))
        }
        element = self.add(items, (*path, 0)) if items is not None else None
        return self._nodes.add(
            Node(
                **{name: schema[key] for key, name in _KEPT.items() if schema.get(key) is not None},
                **nested,
                properties=properties,
                values=values,
                items=element,
                none_of=self.add(none_of, path) if none_of is not None else None,
                required=tuple(schema.get("required") or ()),
                defaults=_defaults(schema),
                enum=tuple(schema.get("enum") or ()),
                pattern=self._pattern(schema.get("pattern") or "", path),
                list_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
                rules=self._rules(schema, path),
            )
        )

    def _rules(self, schema: Mapping[str, Any], path: Path) -> tuple[Rule, ...]:
        written, tell = schema.get("x-kubernetes-validations") or (), self._unchecked
        if tell is None:
            return rules(written)
        judged = []
        for rule in written:
            untold = typed.read_by(str(rule.get("rule", "")), schema) if isinstance(rule, dict) else ""
            if untold:
                tell(render(path), str(rule["rule"]), f"it reads a text of the format {untold}")
            else:
                judged.append(rule)
        return kept(judged, lambda what, why: tell(render(path), what, why))

    def _pattern(self, pattern: str, path: Path) -> str:
        try:
            translated(pattern, trusted=self._unchecked is None)
        except PatternError as error:
            if self._unchecked is None:
                raise
            self._unchecked(render(path), pattern, str(error))
            return ""
        return pattern


def _members(schema: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    members = schema.get("properties") or {}
    if not isinstance(members, dict):
        raise DefinitionError(f"{render(path)}.properties: must be an object")
    return members


def _defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    members = (schema.get("properties") or {}).items()
    return {name: each["default"] for name, each in sorted(members) if each.get("default") is not None}
