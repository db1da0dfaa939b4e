"""JSON as Go's encoding/json writes it, which is what a webhook reads from the API server.

`<`, `>` and `&` are escaped, other characters are UTF-8 as they are, whole floats have no fraction, and what no Unicode
string can hold is U+FFFD. The encoder ends with a newline (`k8s.io/apimachinery` pkg/runtime/serializer/json, v1.36).
"""

from __future__ import annotations

import json
from typing import Any

_ESCAPES = {
    b"<": rb"\u003c",
    b">": rb"\u003e",
    b"&": rb"\u0026",
    "\u2028".encode(): rb"\u2028",
    "\u2029".encode(): rb"\u2029",
}
# Go writes an exponent from here on.
_LARGE = 1e21


def encode(value: Any) -> bytes:
    """Write a value in the order its members have, without spaces."""
    text = json.dumps(_as_go_holds_it(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    data = text.encode() if text.isascii() else _utf_8(text)
    for character, escape in _ESCAPES.items():
        data = data.replace(character, escape)
    return data + b"\n"


def _utf_8(text: str) -> bytes:
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text).encode()


def _as_go_holds_it(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_go_holds_it(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_as_go_holds_it(member) for member in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGE:
        return int(value)
    return value
