"""How much a JSON text holds and how deep it goes, told from its bytes: nothing is parsed, and the work is linear.

Each function is exact for JSON. Of a text that is none it tells at least what a parser reads before it stops.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Final

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


def holds_more_than(text: bytes, nodes: int) -> bool:
    """Tell whether there are more values than `nodes`; an empty object or list counts as two."""
    # A value takes a byte, and so does what separates it from the next.
    if len(text) <= 2 * nodes or len(text.translate(None, _ALL_BUT_SEPARATORS)) < nodes:
        return False
    marks = _without_escapes(text).translate(None, _ALL_BUT_SEPARATORS_AND_QUOTES)
    return len(_outside_strings(marks, 2 * nodes)) >= nodes


def is_deeper_than(text: bytes, levels: int) -> bool:
    """Tell whether objects and lists are nested more than so many levels."""
    if len(text.translate(None, _ALL_BUT_OPENING)) <= levels:
        return False
    marks = _without_escapes(text).translate(_ALIKE, _ALL_BUT_BRACKETS_AND_QUOTES)
    left = _outside_strings(marks)
    # Most objects are gone after a few rounds, each of which takes away the innermost level; others are walked once.
    for depth in range(_FEW):
        if not left:
            return depth > levels
        left = left.replace(b"[]", b"")
    return _FEW + max(accumulate(1 if mark == _OPENING else -1 for mark in left), default=0) > levels


def _without_escapes(text: bytes) -> bytes:
    """Take out escaped backslashes and quotes, so that the quotes that are left begin and end strings."""
    return text.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in text else text


def _outside_strings(marks: bytes, most_quotes: int = -1) -> bytes:
    """Keep of a text of marks and quotes what is outside quotes; past so many quotes, everything."""
    # Two neighbouring quotes end a string and begin one: without them the rest is inside or outside as before.
    return b"".join(marks.replace(b'""', b"").split(b'"', most_quotes)[::2])
