"""A page on a file that gpugate reads or writes, from its JSON schema."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.generate.markdown import cell, code, table

if TYPE_CHECKING:
    from collections.abc import Iterator

_Object = dict[str, Any]  # Any: the JSON edge

_ATTRIBUTE: Final = re.compile(r"^\s+(?P<name>\w+): (?P<text>.+)$")
# Parameters of policies stand on the pages of the policies.
_ELSEWHERE: Final = re.compile(r".*\.Params\Z|ClaimParams\Z")
_MANY: Final = 12  # members of an enumeration that are still shown


def schema_page(title: str, intro: str, schema: _Object) -> str:
    """Return the page: a table for the document, and one for each part that it refers to."""
    parts = schema.get("$defs", {})
    root = parts[_named(schema)] if "$ref" in schema else schema
    shown = _reached(root, parts)
    text = f"<!-- Written by `make generate` from the JSON schema. -->\n\n# {title}\n\n{intro}\n\n## The document\n\n"
    return text + _section(root) + "".join(f"\n## {name}\n\n{_section(part)}" for name, part in shown.items())


def _reached(root: _Object, parts: _Object) -> _Object:
    """Return the parts with members, in the order in which a reader comes across them."""
    found: _Object = {}
    waiting = [root]
    while waiting:
        for name in _references(waiting.pop(0)):
            part = parts[name]
            if name in found or part is root or _ELSEWHERE.match(name):
                continue
            if part.get("properties") or "enum" in part:
                found[name] = part
                waiting.append(part)
    return found


def _references(value: Any) -> Iterator[str]:  # Any: the JSON edge
    if isinstance(value, dict):
        if "$ref" in value:
            yield _named(value)
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _named(reference: _Object) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _section(part: _Object) -> str:
    about, attributes = _described(part.get("description", ""))
    if "properties" not in part:
        return f"{about}\n\nOne of {', '.join(code(str(each)) for each in part['enum'])}.\n"
    required = part.get("required", ())
    rows = [
        (
            cell(code(name) + (" (required)" if name in required else "")),
            cell(_type(each)),
            cell(code(_default(each))),
            cell(each.get("description") or attributes.get(name, "")),
        )
        for name, each in part["properties"].items()
    ]
    return (f"{about}\n\n" if about else "") + table(("key", "type", "default", "meaning"), rows)


def _described(docstring: str) -> tuple[str, dict[str, str]]:
    """Split what a class says of itself from what it says of its attributes."""
    about, _, listed = docstring.partition("Attributes:")
    attributes: dict[str, str] = {}
    name = ""
    for line in listed.splitlines():
        found = _ATTRIBUTE.match(line)
        if found:
            name = found["name"]
            attributes[name] = found["text"]
        elif name and line.strip():
            attributes[name] += f" {line.strip()}"
    return " ".join(about.split()), attributes


def _default(part: _Object) -> str:
    return json.dumps(part["default"], ensure_ascii=False) if part.get("default") not in (None, "", [], {}) else ""


def _type(part: _Object) -> str:
    if "$ref" in part:
        name = _named(part)
        return "object" if _ELSEWHERE.match(name) else f"[{name}](#{name.lower()})"
    if "const" in part:
        return code(str(part["const"]))
    if "enum" in part:
        return _one_of(part["enum"])
    return " or ".join(_type(each) for each in part["anyOf"]) if "anyOf" in part else _plain_type(part)


def _one_of(values: list[Any]) -> str:  # Any: the JSON edge
    listed = [code("null" if each is None else json.dumps(each).strip('"')) for each in values]
    return ", ".join(listed if len(listed) <= _MANY else [*listed[:_MANY], "..."])


def _plain_type(part: _Object) -> str:
    kind = part.get("type", "any")
    if kind == "array":
        return f"list of {_type(part.get('items', {}))}"
    if isinstance(part.get("additionalProperties"), dict):
        return f"object, each member {_type(part['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
