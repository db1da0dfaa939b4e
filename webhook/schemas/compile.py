"""Compile the OpenAPI schemas and CEL rules of CRDs into tables.

Translating a parsed CEL tree turns macros into operations with a variable (`["all", range, variable, test]`), looks
functions up, counts their arguments, checks patterns and unescapes names of fields.

Sources: apiextensions-apiserver v0.36 `pkg/apis/apiextensions/v1/types.go` and `types_jsonschema.go`,
`pkg/apiserver/schema/structural.go`; apiserver v0.36 `pkg/cel/common/schemas.go`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.cel.patterns import PatternError, translated
from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.field import render
from gpugate.webhook.schemas.cel_functions import CALLS, MEMBERS
from gpugate.webhook.schemas.cel_parse import CelSyntaxError, CelUnsupportedError, Tree, parse
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
_SELF: Final = "self"
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_by(rule: str, schema: Mapping[str, Any]) -> str:
    """Return the format of a string that a rule may read: of a field that it names, or of the value; else empty."""
    words = set(_WORD.findall(rule))
    return next((form for name, form in _named(schema, _SELF) if name in words), "")


def _named(schema: Any, name: str) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, dict):
        return
    if schema.get("format") in _FORMATS and schema.get("type") == "string":
        yield name, schema["format"]
    for key, element in (schema.get("properties") or {}).items():
        yield from _named(element, str(key))
    for element in (schema.get("items"), schema.get("additionalProperties")):
        yield from _named(element, name)


_PLAIN: Final = frozenset(
    {"if", "and", "or", "not", "neg", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%", "list", "index"}
)
_QUANTIFIERS: Final = frozenset({"all", "exists", "exists_one", "filter", "map"})
_REGULAR: Final = frozenset({"matches", "find"})
# apiserver v0.36 `pkg/cel/escaping.go`.
_RESERVED: Final = frozenset(
    {
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
    }
    | {"loop", "package", "namespace", "return", "var", "void", "while"}
)
_ESCAPES: Final = {"__dot__": ".", "__dash__": "-", "__slash__": "/", "__underscores__": "__"}


def translate(expression: str, *, trusted: bool = False) -> Tree:
    """Translate a rule's expression.

    Args:
        expression: the expression, which may read `self` and `oldSelf`.
        trusted: its patterns are known to be fast.

    Raises:
        CelSyntaxError: it is no expression.
        CelUnsupportedError: it uses syntax or functions that are not translated.
    """
    return _Translation(trusted=trusted).of(parse(expression), frozenset({"self", "oldSelf"}))


def reads(tree: Tree, name: str) -> bool:
    """Tell whether an expression reads a variable."""
    if tree[:1] == ["var"]:
        return bool(tree[1] == name)
    return any(reads(part, name) for part in tree if isinstance(part, list))


class _Translation:
    def __init__(self, *, trusted: bool) -> None:
        self._trusted = trusted

    def of(self, tree: Tree, known: frozenset[str]) -> Tree:
        head = tree[0]
        if head == "const":
            return tree
        if head == "var":
            if tree[1] not in known:
                raise CelUnsupportedError(f"the variable or type `{tree[1]}`")
            return tree
        if head == "get":
            return ["get", self.of(tree[1], known), _unescaped(tree[2])]
        if head == "map":
            return ["object", *([self.of(key, known), self.of(value, known)] for key, value in tree[1:])]
        if head in _PLAIN:
            return [head, *(self.of(part, known) for part in tree[1:])]
        return self._call(tree, known) if head == "call" else self._member(tree, known)

    def _call(self, tree: Tree, known: frozenset[str]) -> Tree:
        _, name, *arguments = tree
        if name == "has":
            if len(arguments) != 1 or arguments[0][0] != "get":
                raise CelUnsupportedError("`has` of anything but a field")
            _, of, field = arguments[0]
            return ["has", self.of(of, known), _unescaped(field)]
        _counted(name, len(arguments), CALLS)
        return ["call", name, *(self.of(argument, known) for argument in arguments)]

    def _member(self, tree: Tree, known: frozenset[str]) -> Tree:
        _, name, of, *arguments = tree
        target = self.of(of, known)
        if name in _QUANTIFIERS and arguments and arguments[0][0] == "var":
            return self._quantified(name, target, arguments, known)
        if name in _REGULAR:
            return self._pattern(name, target, arguments)
        _counted(name, len(arguments), MEMBERS)
        return ["member", name, target, *(self.of(argument, known) for argument in arguments)]

    def _quantified(self, name: str, target: Tree, arguments: list[Tree], known: frozenset[str]) -> Tree:
        variable = str(arguments[0][1])
        tests = [self.of(argument, known | {variable}) for argument in arguments[1:]]
        if len(tests) != 1 and not (name == "map" and len(tests) == 2):
            raise CelUnsupportedError(f"`{name}` with {len(arguments)} arguments")
        return [name, target, variable, *tests]

    def _pattern(self, name: str, target: Tree, arguments: list[Tree]) -> Tree:
        if len(arguments) != 1 or arguments[0][0] != "const" or not isinstance(arguments[0][1], str):
            raise CelUnsupportedError(f"`{name}` of a pattern that is not written out")
        pattern = arguments[0][1]
        try:
            translated(pattern, trusted=self._trusted)
        except PatternError as error:
            raise CelUnsupportedError(f"the pattern {pattern!r}: {error}") from None
        return [name, target, pattern]


def _counted(name: str, count: int, known: Mapping[str, tuple[int, int, object]]) -> None:
    if name not in known:
        raise CelUnsupportedError(f"the function `{name}`")
    least, most, _ = known[name]
    if not least <= count <= most:
        raise CelUnsupportedError(f"`{name}` with {count} arguments")


def _unescaped(name: str) -> str:
    if name.startswith("__") and name.endswith("__") and name[2:-2] in _RESERVED:
        return name[2:-2]
    for escape, sign in _ESCAPES.items():
        name = name.replace(escape, sign)
    return name


_WRITTEN: Final = ("rule", "message", "messageExpression", "fieldPath", "optionalOldSelf")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")


def rules(
    written: Iterable[Mapping[str, Any]], unchecked: Callable[[str, str], None] | None = None
) -> tuple[Rule, ...]:
    """Translate `x-kubernetes-validations`.

    Args:
        written: the rules as the definition has them.
        unchecked: called with the text of a rule that cannot be translated, and the reason; the rule is kept without a
            test. If it is None, such a rule is an error, and patterns are assumed to be quick.

    Raises:
        CelSyntaxError, CelUnsupportedError: a rule cannot be translated, and `unchecked` is None.
    """
    return tuple(_rule(rule, unchecked) for rule in written)


def unchanged_rules(written: Iterable[Mapping[str, Any]], unchecked: Callable[[str, str], None]) -> tuple[Rule, ...]:
    """Return rules as the definition has them, which are translated when the table is read; see `rules` for `unchecked`."""
    translatable = [{key: str(rule[key]) for key in _WRITTEN if rule.get(key)} for rule in written]
    rules(translatable, unchecked)
    return tuple(Rule(written=rule) for rule in translatable)


def _rule(rule: Mapping[str, Any], unchecked: Callable[[str, str], None] | None) -> Rule:
    expression, message = str(rule.get("rule", "")), str(rule.get("message", "")).strip()
    trusted = unchecked is None
    try:
        _refuse_optional(rule)
        tree = translate(expression, trusted=trusted)
        says = translate(str(rule["messageExpression"]), trusted=trusted) if rule.get("messageExpression") else []
    except (CelSyntaxError, CelUnsupportedError) as error:
        if unchecked is None:
            raise type(error)(f"the rule `{expression}`: {error}") from None
        unchecked(expression, str(error))
        return Rule(message=message)
    return Rule(
        test=tree,
        message=message or f"failed rule: {expression.strip()}",
        says=says,
        path=tuple(a or b for a, b in _STEP.findall(str(rule.get("fieldPath", "")))),
        transition=reads(tree, "oldSelf"),
    )


def _refuse_optional(rule: Mapping[str, Any]) -> None:
    if rule.get("optionalOldSelf"):
        raise CelUnsupportedError("`optionalOldSelf`")


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
            CelSyntaxError, CelUnsupportedError, PatternError: a rule or a pattern cannot be evaluated, and `unchecked`
                is None.
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
        CelSyntaxError, CelUnsupportedError, PatternError: a rule or a pattern cannot be evaluated, and `unchecked` is
            None.
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
