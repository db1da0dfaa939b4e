"""Writes a description as a template for Helm.

Whatever a term becomes is written as JSON, which is YAML on one line, so that no value can break out of its place.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from gpugate.webhook.generate.chart.terms import (
    ABSENT,
    Call,
    Each,
    File,
    If,
    Named,
    Node,
    Release,
    Term,
    Text,
    Value,
    Variable,
)
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_PLAIN_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_STEP: Final = "  "


def template(objects: Iterable[Node]) -> str:
    """Return the template of some objects; each may be there or not, or several times."""
    return "".join(f"{line}\n" for each in objects for line in _document(each))


def named_template(name: str, node: Node) -> str:
    """Return the definition of a text that others refer to by its name."""
    return f'{{{{- define "gpugate.{name}" -}}}}\n{_inline(node)}\n{{{{- end }}}}\n'


def expression(node: Node) -> str:
    """Return what a description is within an action of a template.

    Raises:
        TypeError: it can be written as a template only.
    """
    match node:
        case None:
            return "nil"
        case int() | str():
            return json.dumps(node, ensure_ascii=False)
        case list():
            return _applied("list", node)
        case dict():
            return _applied("dict", [part for pair in node.items() for part in pair])
        case _:
            return _of_term(node)


def action(node: Node) -> str:
    """Return an expression that stands alone, for which it needs no parentheses."""
    found = expression(node)
    return found[1:-1] if found.startswith("(") else found


def _of_term(term: Term) -> str:  # noqa: PLR0911 -- one for each sort of term
    match term:
        case Value(path):
            return f"$.Values.{path}"
        case Release(name):
            return f"$.Release.{name}"
        case Named(name):
            return f'(include "gpugate.{name}" $)'
        case File(path):
            return f'($.Files.Get "{path}")'
        case Variable(name):
            return f"${name}"
        case Call(function, arguments):
            return _applied(function, list(arguments))
        case If(test, then, otherwise):
            return f"(ternary {expression(otherwise)} {expression(then)} (empty {expression(test)}))"
        case Text(parts):
            return f"(print {' '.join(map(expression, parts))})"
        case _:
            raise TypeError(f"{term} cannot be written as an expression")


def _applied(function: str, arguments: list[Node]) -> str:
    return f"({' '.join((function, *map(expression, arguments)))})"


def _lines(node: Node, pad: str) -> Iterator[str]:
    """Yield the lines of a value that starts a line of its own."""
    match node:
        case dict() if node:
            for key, value in node.items():
                yield from _member(key, value, pad)
        case list() if node:
            for each in node:
                yield from _element(each, pad)
        case _:
            yield f"{pad}{_scalar(node)}"


def _document(node: Node) -> Iterator[str]:
    match node:
        case If():
            yield from _choice(node, "", _document)
        case Each():
            yield from _round(node, "", _document)
        case _:
            yield "---"
            yield from _lines(node, "")


def _member(key: str, value: Node, pad: str) -> Iterator[str]:
    name = key if _PLAIN_KEY.fullmatch(key) else json.dumps(key)
    match value:
        case If():
            yield from _choice(value, pad, lambda chosen: _member(key, chosen, pad))
        case str() | Text() if _has_lines(value):
            yield f"{pad}{name}: |-"
            for line in _inline(value).split("\n"):
                yield f"{pad}{_STEP}{line}"
        case dict() | list() if value:
            yield f"{pad}{name}:"
            yield from _lines(value, pad + _STEP)
        case _:
            yield f"{pad}{name}: {_scalar(value)}"


def _element(value: Node, pad: str) -> Iterator[str]:
    match value:
        case If():
            yield from _choice(value, pad, lambda chosen: _element(chosen, pad))
        case Each():
            yield from _round(value, pad, lambda what: _element(what, pad))
        case dict() | list() if value:
            first, *others = _lines(value, pad + _STEP)
            if first.lstrip().startswith("{{-"):
                raise TypeError(f"the first member of an element must always be there: {value}")
            yield f"{pad}- {first.removeprefix(pad + _STEP)}"
            yield from others
        case _:
            yield f"{pad}- {_scalar(value)}"


def _choice(node: If, pad: str, written: Callable[[Node], Iterator[str]]) -> Iterator[str]:
    yield f"{pad}{{{{- if {action(node.test)} }}}}"
    yield from written(node.then)
    if node.otherwise is not ABSENT:
        yield f"{pad}{{{{- else }}}}"
        yield from written(node.otherwise)
    yield f"{pad}{{{{- end }}}}"


def _round(node: Each, pad: str, written: Callable[[Node], Iterator[str]]) -> Iterator[str]:
    yield f"{pad}{{{{- {_range(node)} }}}}"
    yield from written(node.what)
    yield f"{pad}{{{{- end }}}}"


def _range(node: Each) -> str:
    names = ", ".join(f"${name}" for name in node.variables)
    return f"range {names if len(node.variables) > 1 else f'$_, {names}'} := {action(node.among)}"


def _scalar(node: Node) -> str:
    if isinstance(node, Term):
        return f"{{{{ toJson {expression(node)} }}}}"
    if isinstance(node, str) and "{{" in node:
        return f"{{{{ toJson {json.dumps(node, ensure_ascii=False)} }}}}"
    # Of an object or a list only the empty one comes here.
    return yaml_text.inline({} if isinstance(node, dict) else [] if isinstance(node, list) else node)


def _has_lines(node: str | Text) -> bool:
    parts = node.parts if isinstance(node, Text) else (node,)
    return any("\n" in part for part in parts if isinstance(part, str))


def _inline(node: Node) -> str:
    """Write a text where texts follow each other."""
    match node:
        case str():
            return node
        case Text(parts):
            return "".join(map(_inline, parts))
        case If(test, then, otherwise):
            other = "" if otherwise is ABSENT else f"{{{{ else }}}}{_inline(otherwise)}"
            return f"{{{{ if {action(test)} }}}}{_inline(then)}{other}{{{{ end }}}}"
        case Each(_, _, what):
            return f"{{{{ {_range(node)} }}}}{_inline(what)}{{{{ end }}}}"
        case _:
            return f"{{{{ {action(node)} }}}}"
