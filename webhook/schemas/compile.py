"""Compile the OpenAPI schemas and CEL rules of CRDs into tables.

A table holds the text of each rule, which is compiled here to find out whether it is supported.

Sources: apiextensions-apiserver v0.36 `pkg/apis/apiextensions/v1/types.go` and `types_jsonschema.go`,
`pkg/apiserver/schema/structural.go`; apiserver v0.36 `pkg/cel/common/schemas.go`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.cel.expressions import parts
from gpugate.policies.cel.patterns import PatternError, translated
from gpugate.policies.cel.syntax import ExpressionError
from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.field import render
from gpugate.webhook.schemas.rules import OLD_SELF, SELF, compile_message, compile_test
from gpugate.webhook.schemas.table import Node, Rule, Served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gpugate.policies.sdk.field import Path


class Nodes:
    """The nodes of an unfinished table; a node comes after those that it refers to."""

    def __init__(self) -> None:
        self._indexes: dict[bytes, int] = {}
        self._nodes: list[Node] = []

    def add(self, node: Node) -> int:
        """Add a node unless the table has an equal one; return its index."""
        key = msgspec.json.encode(node)
        if key not in self._indexes:
            self._indexes[key] = len(self._nodes)
            self._nodes.append(node)
        return self._indexes[key]

    def all(self) -> tuple[Node, ...]:
        """Return the nodes in the order of their indexes."""
        return tuple(self._nodes)


_FORMATS: Final = frozenset({"byte", "date", "date-time", "duration"})
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_by(rule: str, schema: Mapping[str, Any]) -> str:
    """Return the format of a string that a rule may read: of a field that it names, or of the value; else empty."""
    words = set(_WORD.findall(rule))
    return next((form for name, form in _named(schema, SELF) if name in words), "")


def _named(schema: Any, name: str) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, dict):
        return
    if schema.get("format") in _FORMATS and schema.get("type") == "string":
        yield name, schema["format"]
    for key, element in (schema.get("properties") or {}).items():
        yield from _named(element, str(key))
    for element in (schema.get("items"), schema.get("additionalProperties")):
        yield from _named(element, name)


_WRITTEN: Final = ("rule", "message", "messageExpression", "fieldPath", "optionalOldSelf")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")


def rules(
    written: Iterable[Mapping[str, Any]], unchecked: Callable[[str, str], None] | None = None
) -> tuple[Rule, ...]:
    """Compile `x-kubernetes-validations`.

    Args:
        written: the rules as the definition has them.
        unchecked: called with the text of a rule that is not supported, and the reason; the rule is kept without a
            test. If it is None, such a rule is an error.

    Raises:
        ExpressionError: a rule is not supported, and `unchecked` is None.
    """
    return tuple(_rule(rule, unchecked) for rule in written)


def unchanged_rules(written: Iterable[Mapping[str, Any]], unchecked: Callable[[str, str], None]) -> tuple[Rule, ...]:
    """Return rules as the definition has them, which are compiled when the table is read; see `rules` for `unchecked`."""
    strings = [{key: str(rule[key]) for key in _WRITTEN if rule.get(key)} for rule in written]
    rules(strings, unchecked)
    return tuple(Rule(written=rule) for rule in strings)


def _rule(rule: Mapping[str, Any], unchecked: Callable[[str, str], None] | None) -> Rule:
    expression, message = str(rule.get("rule", "")), str(rule.get("message", "")).strip()
    says = str(rule.get("messageExpression") or "")
    try:
        _refuse_optional(rule)
        test = compile_test(expression)
        if says:
            compile_message(says)
    except ExpressionError as error:
        if unchecked is None:
            raise ExpressionError(error.at, f"{error.message} (the rule `{expression}`)") from None
        unchecked(expression, error.message)
        return Rule(message=message)
    return Rule(
        test=expression,
        message=message or f"failed rule: {expression.strip()}",
        says=says,
        path=tuple(a or b for a, b in _STEP.findall(str(rule.get("fieldPath", "")))),
        transition=any(part.kind == "name" and part.value == OLD_SELF for part in parts(test.node)),
    )


def _refuse_optional(rule: Mapping[str, Any]) -> None:
    if rule.get("optionalOldSelf"):
        raise ExpressionError(0, "`optionalOldSelf`")


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
    """Adds the schemas of one kind to an unfinished table.

    `unchecked` is called with the path of a schema, a rule or pattern of it that cannot be evaluated, and the reason.
    If it is None, such a rule or pattern is an error.
    """

    def __init__(self, nodes: Nodes, unchecked: Callable[[str, str, str], None] | None = None) -> None:
        self._nodes = nodes
        self._unchecked = unchecked

    def add(self, schema: Mapping[str, Any], path: Path = ()) -> int:
        """Add a schema and the schemas below it; return its index.

        Raises:
            DefinitionError: it has members that the schema of a definition cannot have.
            ExpressionError, PatternError: a rule or a pattern cannot be evaluated, and `unchecked` is None.
        """
        if not isinstance(schema, dict) or len(path) > _DEEPEST:
            raise DefinitionError(f"{render(path)}: not a schema, or deeper than {_DEEPEST} levels")
        strange = sorted(schema.keys() - _SILENT - _KEPT.keys() - _NESTED.keys() - _HANDLED)
        if strange:
            raise DefinitionError(f"{render(path)}: {', '.join(strange)} is no part of a definition's schema")
        properties = {name: self.add(member, (*path, name)) for name, member in sorted(_members(schema, path).items())}
        free, items, none_of = schema.get("additionalProperties"), schema.get("items"), schema.get("not")
        values = self.add({} if free is True else free, (*path, "*")) if isinstance(free, dict) or free else None
        nested: dict[str, Any] = {
            name: tuple(self.add(alternative, path) for alternative in schema.get(key) or ())
            for key, name in _NESTED.items()
            # The definition repeats the types of an int-or-string here.
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
        checked = []
        for rule in written:
            unchecked_format = read_by(str(rule.get("rule", "")), schema) if isinstance(rule, dict) else ""
            if unchecked_format:
                tell(render(path), str(rule["rule"]), f"it reads a text of the format {unchecked_format}")
            else:
                checked.append(rule)
        return unchanged_rules(checked, lambda expression, reason: tell(render(path), expression, reason))

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
    return {name: member["default"] for name, member in sorted(members) if member.get("default") is not None}


@dataclass(frozen=True, slots=True)
class Names:
    """What a definition defines."""

    group: str
    kind: str
    namespaced: bool


def is_definition(value: object) -> bool:
    """Tell whether a document is a CustomResourceDefinition, of whatever version."""
    return isinstance(value, dict) and value.get("kind") == "CustomResourceDefinition"


def names(definition: Mapping[str, Any]) -> Names:
    """Read what a definition defines.

    Raises:
        DefinitionError: it does not say, or is of a version before v1.
    """
    if definition.get("apiVersion") != "apiextensions.k8s.io/v1":
        raise DefinitionError(f"apiVersion is {definition.get('apiVersion')}: write apiextensions.k8s.io/v1")
    try:
        spec = definition["spec"]
        defined = Names(str(spec["group"]), str(spec["names"]["kind"]), spec.get("scope") == "Namespaced")
    except (KeyError, TypeError):
        raise DefinitionError("spec.group or spec.names.kind is missing: is the file whole?") from None
    # Files are called by these.
    if not formats.is_subdomain(defined.group) or not (defined.kind.isascii() and defined.kind.isalnum()):
        raise DefinitionError("spec.group is no DNS name, or spec.names.kind has other signs than letters and digits")
    return defined


def served(
    definition: Mapping[str, Any], nodes: Nodes, unchecked: Callable[[str, str, str], None] | None = None
) -> dict[str, Served]:
    """Add the schemas of the versions that are served; return them by their names.

    Raises:
        DefinitionError: a version has no schema, or one that cannot be read; or unknown fields are kept everywhere.
        ExpressionError, PatternError: a rule or a pattern cannot be evaluated, and `unchecked` is None.
    """
    if definition["spec"].get("preserveUnknownFields"):
        raise DefinitionError(
            "spec.preserveUnknownFields: API servers keep every field, so that there is nothing to check"
        )
    compiler = Compiler(nodes, unchecked)
    versions = {}
    for version in definition["spec"].get("versions") or ():
        if not isinstance(version, dict):
            raise DefinitionError("spec.versions: holds what is no object")
        name = str(version.get("name", ""))
        if not version.get("served"):
            continue
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not isinstance(schema, dict):
            raise DefinitionError(f"spec.versions: {name} has no schema.openAPIV3Schema")
        parts = version.get("subresources") or {}
        scale = (parts.get("scale") or {}).get("specReplicasPath", "")
        versions[name] = Served(
            root=compiler.add(schema),
            status="status" in parts,
            scale=tuple(part for part in scale.split(".") if part),
        )
    if not versions:
        raise DefinitionError("spec.versions: none is served")
    return versions
