"""Texts that rules do not see as texts: moments, durations and bytes, which compare in their own ways.

Source: apiserver v0.36 `pkg/cel/common/schemas.go`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FORMATS: Final = frozenset({"byte", "date", "date-time", "duration"})
_SELF: Final = "self"
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_by(rule: str, schema: Mapping[str, Any]) -> str:
    """Return the format of a text below a schema whose field a rule names, or that the rule may see itself; or none."""
    words = set(_WORD.findall(rule))
    return next((form for name, form in _named(schema, _SELF) if name in words), "")


def _named(schema: Any, name: str) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, dict):
        return
    if schema.get("format") in _FORMATS and schema.get("type") == "string":
        yield name, schema["format"]
    for key, each in (schema.get("properties") or {}).items():
        yield from _named(each, str(key))
    for each in (schema.get("items"), schema.get("additionalProperties")):
        yield from _named(each, name)
