"""One line of a log: JSON in ASCII, escaped and short, so that no text in it breaks a line, a terminal or a reader."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeAlias

import orjson

from gpugate.webhook.admission.wording import cut, plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Value: TypeAlias = "str | int | float | bool | Sequence[str]"

# PIPE_BUF of Linux: a write of no more is never mixed with what other processes write to the same pipe (pipe(7)).
LONGEST_LINE: Final = 4096
# The longest name of an object; then shorter and shorter, for lines that are too long once escaped.
_LONGEST_FIELDS: Final = (253, 64, 16)
_SHORTEST_ITEMS: Final = 8


def line(fields: Mapping[str, Value]) -> bytes:
    """Write a line of at most `LONGEST_LINE` bytes, its end included; texts are cut where they are too long.

    Control, bidirectional and other unprintable characters are written as Python's escapes, and whatever else is not
    ASCII as JSON's, so that the line is harmless before and after it is read as JSON.
    """
    written = b""
    for longest in _LONGEST_FIELDS:
        shown = {
            # Nearly every field; asking here saves the call.
            key: value
            if isinstance(value, str) and len(value) <= longest and value.isprintable()
            else _shown(value, longest)
            for key, value in fields.items()
        }
        written = _encoded(shown)
        if len(written) <= LONGEST_LINE:
            break
    return written


def _encoded(fields: dict[str, Value]) -> bytes:
    # orjson takes a tenth of the time, but cannot escape all that is not ASCII.
    written = orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    return written if written.isascii() else f"{json.dumps(fields, separators=(',', ':'))}\n".encode("ascii")


def _shown(value: Value, longest: int) -> Value:
    if isinstance(value, str):
        # Cut first: what is escaped only gets longer.
        return cut(plain(value[: longest + 1]), longest)
    # A pair of types is looked up twice as fast as their union.
    if isinstance(value, (int, float)):
        return value
    most = longest // _SHORTEST_ITEMS
    shown = [cut(plain(item[: longest + 1]), longest) for item in value[:most]]
    return shown if len(value) <= most else [*shown, f"and {len(value) - most} more"]
