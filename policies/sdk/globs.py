"""Patterns in which `*` stands for any run of characters; matched in linear time, whatever the pattern."""

from __future__ import annotations

import re
from typing import Final

# Characters that mean something in RE2; `re.escape` escapes others too, of which RE2 refuses some.
_SPECIAL: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")


def matches(pattern: str, text: str) -> bool:
    """Tell whether the whole text fits the pattern."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    last = rest.pop()
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for part in rest:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True


def expression(pattern: str) -> str:
    """Write a pattern as a regular expression of RE2, without anchors; `.` has to stand for line breaks too."""
    return ".*".join(_SPECIAL.sub(r"\\\g<0>", part) for part in pattern.split("*"))


def overlap(one: str, other: str) -> bool:
    """Tell whether some text fits both patterns; the work grows as the product of their lengths."""
    start, other_start = one.partition("*")[0], other.partition("*")[0]
    if not (start.startswith(other_start) or other_start.startswith(start)):
        return False
    # Pairs of positions that some common start of a text can reach; a loop, because patterns may be long.
    pending, seen = [(0, 0)], {(0, 0)}
    while pending:
        i, j = pending.pop()
        if i == len(one) and j == len(other):
            return True
        for step in _steps(one[i : i + 1], other[j : j + 1]):
            reached = (i + step[0], j + step[1])
            if reached not in seen:
                seen.add(reached)
                pending.append(reached)
    return False


def _steps(a: str, b: str) -> tuple[tuple[int, int], ...]:
    """Return how far each pattern may move on, given the next character of each (empty at the end)."""
    if "*" in {a, b}:
        skip = ((1, 0),) if a == "*" else ((0, 1),)
        swallow = ((0, 1),) if a == "*" and b else ((1, 0),) if b == "*" and a else ()
        return skip + swallow
    return ((1, 1),) if a and a == b else ()
