"""The messages of schema violations: what is wrong and how to fix it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.config import near_misses
from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.quantity import type_name
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.schemas.table import Node


class SchemaProblem(Struct, frozen=True):
    """One reason why the API server refuses an object: its path, message and remedy.

    `whole` means that it concerns the value as a whole, so that another problem of a part may have the same cause.
    """

    path: Path
    message: str
    remedy: str = ""
    whole: bool = False


class Fault(Struct, frozen=True):
    """A problem, and the conditions under which it is reported.

    Attributes:
        problem: the reported problem.
        owner: the path of the value whose schema is violated; of a missing member its parent's. An UPDATE that leaves
            this value as it was may keep the fault.
        blocking: no CEL rules are evaluated, as in the API server if a value is missing, unsupported, too long, of a
            wrong type, or a list has too many elements (apiextensions-apiserver v0.36
            `pkg/registry/customresource/strategy.go`, hasBlockingErr).
        transition: it compares the new value with the old one, so that an unchanged value does not excuse it.
    """

    problem: SchemaProblem
    owner: Path
    blocking: bool = False
    transition: bool = False


_WIDTH: Final = 60  # characters of a value that are shown
_MOST_NAMES: Final = 12
_TYPES: Final = {
    "string": "a string",
    "object": "an object",
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}
# Pattern -> a description of the strings that match it.
_EXAMPLES: Final = {
    r"^(([0-9]+(s|m|h))+)|(Never)$": "a duration in hours, minutes and seconds, such as 720h or 1h30m, or Never",
    r"^(([0-9]+(s|m|h))+|Never)$": "a duration in hours, minutes and seconds, such as 720h or 1h30m, or Never",
    r"^([0-9]+(s|m|h))+$": "a duration in hours, minutes and seconds, such as 48h or 1h30m",
    r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$": "a duration in hours and minutes, such as 8h or 1h30m",
    r"^((100|[0-9]{1,2})%|[0-9]+)$": 'a number of nodes such as "3", or a share such as "10%"',
    r"^[^/]*$": "it without a /, such as karpenter.k8s.aws: the version does not belong here",
}


# Signs of placeholders, which are replaced before the object reaches an API server.
_PLACEHOLDER: Final = re.compile(r"\$\{|\$\(|\{\{|<[^>]*>|\$[A-Za-z_]|%[A-Z_]+%|__[A-Z_]+__")


def is_placeholder(value: Any) -> bool:
    """Tell whether a value is a text with a placeholder, so that nothing is known of the value that takes its place."""
    return isinstance(value, str) and _PLACEHOLDER.search(value) is not None


def unknown(path: Path, node: Node, within: Mapping[str, Any]) -> tuple[SchemaProblem, str]:
    """Return the problem of a field that is not in the schema, and a similar known name, if any.

    An object whose fields are all known one level up, and missing there, is what an older version of the kind had around
    them; `within` is the object with the field.
    """
    inner = within[str(path[-1])]
    name, known = str(path[-1]), sorted({*node.properties, *(("metadata",) if node.embedded else ())})
    folded = {field.lower(): field for field in known}
    near = folded.get(name.lower()) or next(iter(near_misses(name, known)), "")
    if near:
        remedy = f"did you mean {near}?"
    elif isinstance(inner, dict) and inner and inner.keys() <= node.properties.keys() - within.keys():
        remedy = f"remove it, and write what it contains one level up: {_names(sorted(inner))}"
    elif known:
        remedy = f"remove it; known fields: {_names(known)}"
    else:
        remedy = "remove it; no field is allowed here"
    where = render((*path[:-1], _shorten_name(name)))
    message = f'unknown field "{where}": kubectl rejects it, and other clients drop it silently'
    return SchemaProblem(path, message, remedy), near


def missing(path: Path, node: Node | None) -> SchemaProblem:
    """Return the problem of a required field that is missing."""
    if node and node.required and not node.enum:
        remedy = f"add {path[-1]} with {_fields(node.required)}"
    else:
        remedy = f"write {path[-1]}: {_wanted(node)}" if node and _wanted(node) else f"write {path[-1]}"
    return SchemaProblem(path, f'required field "{path[-1]}" is missing', remedy)


def of_type(path: Path, value: Any, node: Node) -> SchemaProblem:
    """Return the problem of a value of a wrong type."""
    if node.quantity:
        return SchemaProblem(
            path, f"{_shorten_value(value)} is not a valid quantity", "write a number such as 1, 500m or 16Gi"
        )
    wanted = "a string or a whole number" if node.int_or_string else _TYPES.get(node.type, "something")
    if isinstance(value, float) and node.type != "string":
        return SchemaProblem(path, f"must be {wanted}, not {_shorten_value(value)}", "write it without decimals")
    remedy = f"write {_wanted(node) or wanted}"
    if value is None:
        remedy = f"write {_wanted(node) or wanted}, or remove it"
    elif node.type == "string" and not isinstance(value, dict | list):
        # What an environment variable holds may be a password.
        remedy = "put it in quotes" if "env" in path else f'put it in quotes: "{_plain(value)}"'
    elif isinstance(value, str) and node.type in {"integer", "number", "boolean"}:
        remedy = f"write {wanted}, without quotes"
    return SchemaProblem(path, f"must be {wanted}, not {type_name(value)}", remedy)


def of_enum(path: Path, value: Any, node: Node) -> SchemaProblem:
    """Return the problem of a value that is not among the allowed ones."""
    allowed = [_plain(member) for member in node.enum]
    folded = {member.lower(): member for member in allowed}
    text = value if isinstance(value, str) else ""
    near = folded.get(text.lower()) or next(iter(near_misses(text, allowed)), "")
    remedy = f"did you mean {near}?" if near else f"write {'' if len(allowed) == 1 else 'one of them: '}{allowed[0]}"
    return SchemaProblem(path, f"{_shorten_value(value)} is not one of {_names(allowed)}", remedy)


def of_pattern(path: Path, value: str, pattern: str) -> SchemaProblem:
    """Return the problem of a string that does not match its pattern."""
    example = _EXAMPLES.get(pattern)
    remedy = f"write {example}" if example else f"write what matches {pattern}"
    return SchemaProblem(path, f"{_shorten_value(value)} does not match the pattern of the field", remedy)


def of_format(path: Path, value: str, name: str) -> SchemaProblem:
    """Return the problem of a string of another format."""
    example = ", as in 2026-01-31T12:00:00Z" if name == "date-time" else ""
    return SchemaProblem(
        path, f"{_shorten_value(value)} does not have the format {name}", f"write it as {name}{example}"
    )


def too_long(path: Path, length: int, most: int) -> SchemaProblem:
    """Return the problem of a string with too many characters."""
    return SchemaProblem(path, f"has {length:,} characters, and at most {most:,} are allowed", "shorten it")


def too_short(path: Path, length: int, least: int) -> SchemaProblem:
    """Return the problem of a string with too few characters."""
    if not length:
        return SchemaProblem(path, "is empty", "write a value")
    return SchemaProblem(path, f"has {length:,} characters, and at least {least:,} are needed", "write a longer one")


def too_many(path: Path, size: int, most: int, units: str) -> SchemaProblem:
    """Return the problem of too many elements or members."""
    return SchemaProblem(
        path, f"has {size:,} {units}, and at most {most:,} are allowed", f"remove {size - most:,}", whole=True
    )


def too_few(path: Path, size: int, least: int, units: str) -> SchemaProblem:
    """Return the problem of too few elements or members."""
    message = f"is empty, and needs at least {least:,} of its {units}" if not size else f"has {size:,} {units} only"
    return SchemaProblem(path, message, f"write at least {least:,}")


def out_of_range(path: Path, value: float, name: str) -> SchemaProblem:
    """Return the problem of a number outside the range of its format."""
    return SchemaProblem(path, f"{_shorten_value(value)} does not fit into an {name}", "write a smaller number")


def too_great(path: Path, value: float, most: float, *, exclusive: bool) -> SchemaProblem:
    """Return the problem of a number above the maximum."""
    bound = f"less than {most}" if exclusive else f"at most {most}"
    return SchemaProblem(path, f"{_shorten_value(value)} is too large: {bound} is allowed", f"write {bound}")


def too_small(path: Path, value: float, least: float, *, exclusive: bool) -> SchemaProblem:
    """Return the problem of a number below the minimum."""
    bound = f"more than {least}" if exclusive else f"at least {least}"
    return SchemaProblem(path, f"{_shorten_value(value)} is too small: {bound} is needed", f"write {bound}")


def repeated(path: Path, keys: Iterable[str]) -> SchemaProblem:
    """Return the problem of a duplicate element."""
    named = ", ".join(keys)
    message = f"another element has the same {named}" if named else "duplicate element"
    return SchemaProblem(path, message, "remove one of them" + (f", or change its {named}" if named else ""))


def _wanted(node: Node | None) -> str:
    if node is None:
        return ""
    if node.enum:
        return ("" if len(node.enum) == 1 else "one of ") + _names([_plain(member) for member in node.enum])
    if node.required:
        return f"an object with {_fields(node.required)}"
    if node.int_or_string:
        return "a string or a whole number"
    return _EXAMPLES.get(node.pattern) or _TYPES.get(node.type, "")


def _fields(names: Sequence[str]) -> str:
    return f"the field{'s' if len(names) > 1 else ''} {_names(names)}"


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MOST_NAMES:,} more" if len(listed) > _MOST_NAMES else ""
    return ", ".join(listed[:_MOST_NAMES]) + more


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _shorten_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def _shorten_name(name: str) -> str:
    return name if len(name) <= _WIDTH else f"{name[: _WIDTH - 3]}..."
