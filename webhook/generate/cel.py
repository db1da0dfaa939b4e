"""Writes a concern in CEL, so that the API server can tell whether an object is worth a call.

Optional access (`object.?spec`) is in the language since Kubernetes 1.29 (`k8s.io/apiserver` pkg/cel/environment/base.go,
v0.36.3). In a match condition `object` and `request` have no types, so a name is looked up when it is evaluated.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import TYPE_CHECKING

from gpugate.policies.sdk.concerns import AllOf, AnyOf, Each, Flag, Key, Not, SentBy, Text, patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.platform import Platform

_VARIABLES = "abcdefgh"
# Characters that mean something in RE2; `re.escape` escapes others too, of which RE2 refuses some.
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")


def alternatives(concern: Concern, platform: Platform) -> str:
    """Write a concern as a condition on `object`, each alternative on a line of its own."""
    parts = concern.parts if isinstance(concern, AnyOf) else (concern,)
    return " ||\n".join(_written(part, "object", 0, platform) for part in parts)


def _written(concern: Concern, around: str, depth: int, platform: Platform) -> str:
    """Write a concern about what `around` stands for, in which `depth` variables are taken."""
    variable = _VARIABLES[depth]
    match concern:
        case AnyOf(parts):
            return _joined(" || ", (_written(part, around, depth, platform) for part in parts), "false")
        case AllOf(parts):
            return _joined(" && ", (_written(part, around, depth, platform) for part in parts), "true")
        case Not(part):
            return f"!({_written(part, around, depth, platform)})"
        case Each(path, where):
            found = _written(where, variable, depth + 1, platform)
            return f"{_optional(around, path)}.orValue([]).exists({variable}, {found})"
        case _:
            return _leaf(concern, around, variable, platform)


def _leaf(concern: Concern, around: str, variable: str, platform: Platform) -> str:
    match concern:
        case Key(path, like):
            fits = _fits(variable, patterns(like, platform))
            return f"{_optional(around, path)}.orValue({{}}).exists({variable}, {fits})"
        case Text(path, like):
            return _fits(f"{_optional(around, path)}.orValue('')", patterns(like, platform))
        case Flag(path):
            return f"{_optional(around, path)}.orValue(false)"
        case SentBy(like):
            return _fits("request.userInfo.username", (like,))
        case _:
            raise TypeError(f"{type(concern).__name__} has no words in CEL: add them here")


def _joined(operator: str, parts: Iterator[str], nothing: str) -> str:
    found = list(parts)
    return f"({operator.join(found)})" if len(found) > 1 else found[0] if found else nothing


def _optional(around: str, path: str) -> str:
    return around + "".join(f".?{name}" for name in path.split("."))


def _fits(text: str, known: Iterable[str]) -> str:
    """Write that a string fits one of some patterns; those without a `*` are compared at once."""
    found = []
    for exact, group in groupby(sorted(known, key=lambda pattern: "*" in pattern), lambda pattern: "*" not in pattern):
        if exact:
            names = [_quoted(name) for name in group]
            found.append(f"{text} == {names[0]}" if len(names) == 1 else f"{text} in [{', '.join(names)}]")
        else:
            found += [_like(text, pattern) for pattern in group]
    return _joined(" || ", iter(found), "false")


def _like(text: str, pattern: str) -> str:
    first, *between, last = pattern.split("*")
    if not (first or last or any(between)):
        return "true"
    if not between and not last:
        return f"{text}.startsWith({_quoted(first)})"
    if not between and not first:
        return f"{text}.endsWith({_quoted(last)})"
    if len(between) == 1 and not first and not last:
        return f"{text}.contains({_quoted(between[0])})"
    expression = ".*".join(_SPECIAL.sub(r"\\\g<0>", part) for part in (first, *between, last))
    return f"{text}.matches({_quoted(f'^(?s:{expression})$')})"


def _quoted(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return "'" + escaped.replace("'", "\\'") + "'"
