"""A line of a text with those around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_AROUND = 1


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some lines of a file; `first_line` is the number of the first of them, from 1."""

    lines: tuple[str, ...] = ()
    first_line: int = 0


NO_EXCERPT: Final = Excerpt()


def excerpt(lines: Sequence[str], line: int, first_line: int) -> Excerpt:
    """Return the line with number `line` and its neighbours, out of lines of which the first has `first_line`."""
    index = line - first_line
    first = max(0, index - _AROUND)
    return Excerpt(tuple(lines[first : index + _AROUND + 1]), first_line + first)
