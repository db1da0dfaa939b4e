"""Works a description out without Helm."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gpugate.webhook.generate.chart.functions import FUNCTIONS
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_Json = Any  # Any: the JSON edge


@dataclass(frozen=True, slots=True)
class Scope:
    """What terms stand for.

    Attributes:
        values: the chart's values, whole.
        release: what Helm knows of the release.
        named: the texts that are described once.
        files: path -> text of the chart's files.
        variables: what the loops around are at.
    """

    values: Mapping[str, _Json]
    release: Mapping[str, _Json]
    named: Mapping[str, Node]
    files: Mapping[str, str]
    variables: Mapping[str, _Json] = field(default_factory=dict)


def evaluate(node: Node, scope: Scope) -> _Json:
    """Return the JSON that a description becomes; `ABSENT` for nothing."""
    match node:
        case dict():
            found = {key: evaluate(value, scope) for key, value in node.items()}
            return {key: value for key, value in found.items() if value is not ABSENT}
        case list():
            return [value for each in node for value in _elements(each, scope)]
        case Term():
            return _term(node, scope)
        case _:
            return node


def _elements(node: Node, scope: Scope) -> Iterator[_Json]:
    """Yield what an element of a list becomes: nothing, itself, or one for each of something."""
    match node:
        case If(test, then, otherwise):
            yield from _elements(then if evaluate(test, scope) else otherwise, scope)
        case Each():
            yield from _each(node, scope)
        case _ if node is not ABSENT:
            yield evaluate(node, scope)


def _term(term: Term, scope: Scope) -> _Json:  # noqa: C901, PLR0911 -- one for each sort of term
    match term:
        case Value(path):
            *sections, key = path.split(".")
            section: _Json = scope.values
            for name in sections:
                section = section[name]
            # Null takes away what need not be there.
            return section.get(key)
        case Release(name):
            return scope.release[name]
        case Named(name):
            return evaluate(scope.named[name], scope)
        case File(path):
            return scope.files[path]
        case Variable(name):
            return scope.variables[name]
        case Call(function, arguments):
            return FUNCTIONS[function](*(evaluate(each, scope) for each in arguments))
        case If(test, then, otherwise):
            return evaluate(then if evaluate(test, scope) else otherwise, scope)
        case Each():
            return list(_each(term, scope))
        case Text(parts):
            return "".join(map(_joined, (evaluate(part, scope) for part in parts)))
        case _:
            return term


def _each(term: Each, scope: Scope) -> Iterator[_Json]:
    among = evaluate(term.among, scope)
    rounds = sorted(among.items()) if isinstance(among, dict) else [(each,) for each in among]
    for values in rounds:
        inner = replace(scope, variables={**scope.variables, **dict(zip(term.variables, values, strict=True))})
        yield evaluate(term.what, inner)


def _joined(value: _Json) -> str:
    if isinstance(value, list):
        return "".join(map(_joined, value))
    return "" if value is ABSENT else str(value)
