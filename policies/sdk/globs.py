"""Patterns in which `*` stands for any run of characters; matched in linear time, whatever the pattern."""

from __future__ import annotations

from functools import cache


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


def overlap(one: str, other: str) -> bool:
    """Tell whether some text fits both patterns."""

    @cache
    def meet(i: int, j: int) -> bool:
        if i == len(one) and j == len(other):
            return True
        if i < len(one) and one[i] == "*":
            return meet(i + 1, j) or (j < len(other) and meet(i, j + 1))
        if j < len(other) and other[j] == "*":
            return meet(i, j + 1) or (i < len(one) and meet(i + 1, j))
        return i < len(one) and j < len(other) and one[i] == other[j] and meet(i + 1, j + 1)

    return meet(0, 0)
