"""Shows two texts as what is expected and what came instead."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_LINES: Final = 60


def differing(expected: Sequence[str], got: Sequence[str]) -> Iterator[str]:
    """Yield lines that differ: `-` expected, `+` got, with some of those around them."""
    yield "- expected, + got"
    lines = list(difflib.unified_diff(expected, got, lineterm="", n=2))[2:]
    yield from (line for line in lines[:_MOST_LINES] if not line.startswith("@@"))
    if len(lines) > _MOST_LINES:
        yield f"... {len(lines) - _MOST_LINES} lines more"
