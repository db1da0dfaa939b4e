"""The size of JSON texts, and JSON that is nested deeper than parsers accept.

The API server accepts 10,000 levels (`sigs.k8s.io/json` maxNestingDepth, v1.36), in `managedFields` of every object and in the
parameters of a ResourceClaim. orjson stops at 1,024 and msgspec at the recursion limit of Python. So the author of one object could
make every list that contains it unreadable.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# The deepest object that policies evaluate has about 20 levels.
MAX_DEPTH: Final = 200

_SEPARATORS: Final = b",{["
_BRACKETS: Final = b"{[}]"
_OPENING: Final = b"["[0]
_FEW: Final = 20
_ALIKE: Final = bytes.maketrans(b"{}", b"[]")
_EVERY_BYTE: Final = bytes(range(256))
_ALL_BUT_SEPARATORS: Final = _EVERY_BYTE.translate(None, _SEPARATORS)
_ALL_BUT_SEPARATORS_AND_QUOTES: Final = _EVERY_BYTE.translate(None, _SEPARATORS + b'"')
_ALL_BUT_OPENING: Final = _EVERY_BYTE.translate(None, b"{[")
_ALL_BUT_BRACKETS_AND_QUOTES: Final = _EVERY_BYTE.translate(None, _BRACKETS + b'"')


def has_more_values_than(text: bytes, nodes: int) -> bool:
    """Return whether a JSON text contains more than `nodes` values; an empty object or list counts as two."""
    # A value takes at least one byte, and so does its separator.
    if len(text) <= 2 * nodes or len(text.translate(None, _ALL_BUT_SEPARATORS)) < nodes:
        return False
    marks = _without_escapes(text).translate(None, _ALL_BUT_SEPARATORS_AND_QUOTES)
    return len(_outside_strings(marks, 2 * nodes)) >= nodes


def is_deeper_than(text: bytes, levels: int) -> bool:
    """Return whether objects and lists are nested more than `levels` deep."""
    if len(text.translate(None, _ALL_BUT_OPENING)) <= levels:
        return False
    marks = _without_escapes(text).translate(_ALIKE, _ALL_BUT_BRACKETS_AND_QUOTES)
    remaining = _outside_strings(marks)
    # Each round removes the innermost level. Most objects need only a few rounds; the others are scanned once.
    for depth in range(_FEW):
        if not remaining:
            return depth > levels
        remaining = remaining.replace(b"[]", b"")
    return _FEW + max(accumulate(1 if mark == _OPENING else -1 for mark in remaining), default=0) > levels


def _without_escapes(text: bytes) -> bytes:
    """Remove escaped backslashes and quotes, so that every remaining quote begins or ends a string."""
    return text.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in text else text


def _outside_strings(marks: bytes, most_quotes: int = -1) -> bytes:
    """Return the marks outside strings, and after `most_quotes` quotes all marks; `marks` has only marks and quotes."""
    # Removing two adjacent quotes does not change what is inside and what is outside strings.
    return b"".join(marks.replace(b'""', b"").split(b'"', most_quotes)[::2])


_TOKEN: Final = re.compile(rb'\\.|["{}\[\]]', re.DOTALL)


def read_json(parse: Callable[[bytes], T], text: bytes | memoryview) -> T:
    """Parse a JSON text with a parser that limits the depth; objects and lists that are too deep for it are read as empty.

    Raises what the parser raises for a text that is not JSON, but no RecursionError.
    """
    data = bytes(text)
    return parse(cut(data, MAX_DEPTH) if is_deeper_than(data, MAX_DEPTH) else data)


def cut(text: bytes, levels: int) -> bytes:
    """Return a JSON text in which objects and lists below the first `levels` levels are empty."""
    pieces: list[bytes] = []
    depth = written = 0
    in_string = False
    # Where the content begins that is left out.
    left_out: int | None = None
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == b'"':
            in_string = not in_string
        elif in_string or mark.startswith(b"\\"):
            continue
        elif mark in b"{[":
            depth += 1
            if depth == levels + 1:
                left_out = token.end()
        else:
            if depth == levels + 1 and left_out is not None:
                pieces.append(text[written:left_out])
                written, left_out = token.start(), None
            depth -= 1
    return b"".join((*pieces, text[written:left_out]))
