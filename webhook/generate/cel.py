"""Writes a concern in CEL, so that the API server can tell whether an object is worth a call.

Optional access (`object.?spec`) is in the language since Kubernetes 1.29 (`k8s.io/apiserver` pkg/cel/environment/base.go,
v0.36.3). In a match condition `object` and `request` have no types, so a name is looked up when it is evaluated.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import TYPE_CHECKING

from gpugate.policies.sdk.concerns import AllOf, AnyOf, Each, Flag, Key, Listed, Not, SentBy, Text, known, own

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


def names(texts: Iterable[str]) -> str:
    """Write strings as the elements of a list."""
    return ", ".join(map(_quoted, texts))


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
            fits = _meant(variable, like, platform)
            return f"{_optional(around, path)}.orValue({{}}).exists({variable}, {fits})"
        case Text(path, like):
            return _meant(f"{_optional(around, path)}.orValue('')", like, platform)
        case Flag(path):
            return f"{_optional(around, path)}.orValue(false)"
        case SentBy(like):
            return _meant("request.userInfo.username", (like,), platform)
        case _:
            raise TypeError(f"{type(concern).__name__} has no words in CEL: add them here")


def _joined(operator: str, parts: Iterator[str], nothing: str) -> str:
    found = list(parts)
    return f"({operator.join(found)})" if len(found) > 1 else found[0] if found else nothing


def _optional(around: str, path: str) -> str:
    return around + "".join(f".?{name}" for name in path.split("."))


def _meant(text: str, like: tuple[str, ...] | Listed, platform: Platform) -> str:
    if isinstance(like, tuple):
        return _joined(" || ", iter(_fitting(text, like)), "false")
    # The platform's own come last and in a form of their own, because the Helm chart learns of them when it is rendered.
    own_names = "".join(f"|{_regex(pattern)}" for pattern in own(like, platform))
    fits_own = [f"{text}.matches({_quoted(f'^(?s: {own_names})$')})"] if own_names else []
    return f"({' || '.join((*_fitting(text, known(like)), *fits_own))})"


def _fitting(text: str, like: Iterable[str]) -> list[str]:
    """Write that a string fits one of some patterns; those without a `*` are compared at once."""
    found = []
    for exact, group in groupby(sorted(like, key=lambda pattern: "*" in pattern), lambda pattern: "*" not in pattern):
        if exact:
            each = list(group)
            found.append(f"{text} == {names(each)}" if len(each) == 1 else f"{text} in [{names(each)}]")
        else:
            found += [_like(text, pattern) for pattern in group]
    return found


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
    return f"{text}.matches({_quoted(f'^(?s:{_regex(pattern)})$')})"


def _regex(pattern: str) -> str:
    return ".*".join(_SPECIAL.sub(r"\\\g<0>", part) for part in pattern.split("*"))


def _quoted(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return "'" + escaped.replace("'", "\\'") + "'"
