"""What the functions of Helm's templates do, of those that descriptions use.

Sources: Go `text/template` and `encoding/json`, github.com/Masterminds/sprig v3.3.0, helm.sh/helm v4.3.1 pkg/engine/funcs.go.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_Value = Any  # Any: whatever JSON holds

# Go writes these so that JSON can stand in HTML.
_ESCAPED: Final = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def _go_json(value: _Value, indent: int | None = None) -> str:
    separators = (",", ":" if indent is None else ": ")
    written = json.dumps(value, sort_keys=True, indent=indent, separators=separators, ensure_ascii=False)
    return written.translate(_ESCAPED)


def _any(*values: _Value) -> _Value:
    return next((value for value in values if value), values[-1])


def _all(*values: _Value) -> _Value:
    return next((value for value in values if not value), values[-1])


def _dig(*arguments: _Value) -> _Value:
    """Return what stands at a path in an object, or the value before the last argument."""
    *path, found = arguments
    *path, missing = path
    for key in path:
        if key not in found:
            return missing
        found = found[key]
    return found


def _number(value: _Value) -> int:
    """Return a number, and 0 for a text that is none."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _float(value: _Value) -> float:
    """Return a number, and 0 for a text that is none."""
    try:
        return float(value)
    except ValueError:
        return 0.0


FUNCTIONS: Final[dict[str, Callable[..., _Value]]] = {
    "eq": lambda one, other: one == other,
    "not": lambda value: not value,
    "or": _any,
    "and": _all,
    "ge": lambda one, other: one >= other,
    "lt": lambda one, other: one < other,
    "int": _number,
    "add": lambda *numbers: sum(map(_number, numbers)),
    "has": lambda element, among: element in among,
    "without": lambda among, *elements: [each for each in among if each not in elements],
    "concat": lambda *lists: [element for each in lists for element in each],
    "append": lambda among, element: [*among, element],
    "uniq": lambda among: list(dict.fromkeys(among)),
    "sortAlpha": sorted,
    "get": lambda members, key: members.get(key, ""),
    "dig": _dig,
    "deepCopy": lambda value: value,
    "set": lambda members, key, value: {**members, key: value},
    "dict": lambda *pairs: dict(zip(pairs[::2], pairs[1::2], strict=True)),
    "list": lambda *elements: list(elements),
    "mergeOverwrite": lambda *maps: {key: value for each in maps for key, value in each.items()},
    "contains": lambda part, whole: part in whole,
    "hasKey": lambda members, key: key in members,
    "mulf": lambda one, other: _float(one) * _float(other),
    "regexFind": lambda pattern, whole: found[0] if (found := re.search(pattern, whole)) else "",
    "regexMatch": lambda pattern, whole: bool(re.search(pattern, whole)),
    "trimAll": lambda characters, whole: whole.strip(characters),
    "trimPrefix": lambda prefix, whole: whole.removeprefix(prefix),
    "trimSuffix": lambda suffix, whole: whole.removesuffix(suffix),
    "trunc": lambda length, whole: whole[:length],
    "replace": lambda old, new, whole: whole.replace(old, new),
    "join": lambda between, texts: between.join(texts),
    "toString": str,
    "toJson": _go_json,
    "toPrettyJson": lambda value: _go_json(value, 2),
    "sha256sum": lambda whole: hashlib.sha256(whole.encode()).hexdigest(),
    "b64enc": lambda whole: base64.b64encode(whole.encode()).decode("ascii"),
}
