"""Reads members of a response as Go's decoder does: null is the zero value, another type is an error, case matters."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, NoReturn

from api_server.errors import CallError

Json = dict[str, Any]


def decode(body: bytes) -> Json:
    """Read a JSON object.

    Raises:
        CallError: it is none.
    """
    try:
        value = json.loads(body.decode(errors="replace"), parse_constant=_no_constant)
    except ValueError as error:
        _refuse(f"couldn't get version/kind; json parse error: {error}")
    if not isinstance(value, dict):
        _refuse("couldn't get version/kind; json parse error: not an object")
    return value


def boolean(obj: Json, member: str) -> bool:
    """Read a boolean."""
    return bool(_typed(obj, member, bool))


def text_or_none(obj: Json, member: str) -> str | None:
    """Read a string that may be absent."""
    value: str | None = _typed(obj, member, str)
    return value


def base64_bytes(obj: Json, member: str) -> bytes:
    """Read bytes, which JSON holds in standard base64 with its padding."""
    text = (text_or_none(obj, member) or "").replace("\r", "").replace("\n", "")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        _refuse(f"{member}: illegal base64 data")


def texts(obj: Json, member: str) -> tuple[str, ...]:
    """Read a list of strings."""
    found = _typed(obj, member, list) or []
    return tuple(_string(item, member) for item in found)


def text_map(obj: Json, member: str) -> dict[str, str]:
    """Read an object of strings."""
    found = _typed(obj, member, dict) or {}
    return {key: _string(value, member) for key, value in found.items()}


def status(obj: Json) -> Json | None:
    """Read a `metav1.Status`."""
    found: Json | None = _typed(obj, "status", dict)
    for member, kind in (("code", int), ("message", str), ("reason", str), ("status", str)):
        _typed(found or {}, member, kind)
    return found


def _string(value: Any, member: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        _refuse(f"{member}: cannot unmarshal into Go value of type string")
    return value


def _typed(obj: Json, member: str, kind: type) -> Any:
    value = obj.get(member)
    if value is not None and type(value) is not kind:
        _refuse(f"{member}: cannot unmarshal {type(value).__name__} into Go value of type {kind.__name__}")
    return value


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"invalid character {text[0]!r} looking for beginning of value")


def _refuse(message: str) -> NoReturn:
    raise CallError(f"failed to call webhook: {message}")
