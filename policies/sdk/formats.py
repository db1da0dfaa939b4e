"""Text formats: globs, simple patterns for labels, and DNS names.

`CC-####` matches `CC-1234`, and `team-*` matches `team-search`. There is no escaping. The time is at most the product
of the lengths of text and pattern.

Source: `k8s.io/apimachinery/pkg/util/validation` v0.36 (IsDNS1123Label, IsDNS1123Subdomain).
"""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_LABEL: Final = 63
_LONGEST_SUBDOMAIN: Final = 253


def is_label(name: str) -> bool:
    """Tell whether a name is a DNS label: at most 63 lower-case letters, digits and `-`, with no `-` at either end."""
    return len(name) <= _LONGEST_LABEL and _LABEL.fullmatch(name) is not None


def is_subdomain(name: str) -> bool:
    """Tell whether a name is a DNS subdomain: labels of any length between dots, at most 253 characters."""
    return len(name) <= _LONGEST_SUBDOMAIN and all(_LABEL.fullmatch(part) for part in name.split("."))


LONGEST = 256  # characters: the maximum of an EC2 tag value, and more than a label value may have; a longer text matches no form


def fits(form: str, text: str) -> bool:
    """Tell whether the whole text matches this form."""
    if len(text) > LONGEST:
        return False
    form_index, text_index = 0, 0
    star, resume = -1, 0
    while text_index < len(text):
        if form_index < len(form) and form[form_index] == "*":
            star, resume = form_index, text_index
            form_index += 1
        elif form_index < len(form) and _is(form[form_index], text[text_index]):
            form_index, text_index = form_index + 1, text_index + 1
        elif star >= 0:
            # The last `*` takes one character more; earlier ones never need to.
            resume += 1
            form_index, text_index = star + 1, resume
        else:
            return False
    return not form[form_index:].strip("*")


def _is(sign: str, character: str) -> bool:
    return sign == character or (sign == "#" and character in "0123456789")


# Characters with a meaning in RE2. `re.escape` escapes others too, some of which RE2 rejects.
_SPECIAL: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")


def matches(pattern: str, text: str) -> bool:
    """Tell whether the whole text matches the pattern."""
    if "*" not in pattern:
        return pattern == text
    first, *parts = pattern.split("*")
    last = parts.pop()
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for part in parts:
        start = text.find(part, position, end)
        if start < 0:
            return False
        position = start + len(part)
    return True


def expression(pattern: str) -> str:
    """Write a pattern as an RE2 expression without anchors, in which `.` has to match line breaks too."""
    return ".*".join(_SPECIAL.sub(r"\\\g<0>", part) for part in pattern.split("*"))


def overlap(left: str, right: str) -> bool:
    """Tell whether some text matches both patterns; the time is the product of their lengths."""
    left_start, right_start = left.partition("*")[0], right.partition("*")[0]
    if not (left_start.startswith(right_start) or right_start.startswith(left_start)):
        return False
    # Pairs of positions that some prefix of a text can reach. A loop, because patterns may be long.
    pending, visited = [(0, 0)], {(0, 0)}
    while pending:
        i, j = pending.pop()
        if i == len(left) and j == len(right):
            return True
        for step in _steps(left[i : i + 1], right[j : j + 1]):
            reached = (i + step[0], j + step[1])
            if reached not in visited:
                visited.add(reached)
                pending.append(reached)
    return False


def _steps(a: str, b: str) -> tuple[tuple[int, int], ...]:
    """Return how far each pattern may advance, given the next character of each (empty at the end)."""
    if "*" in {a, b}:
        skip = ((1, 0),) if a == "*" else ((0, 1),)
        swallow = ((0, 1),) if a == "*" and b else ((1, 0),) if b == "*" and a else ()
        return skip + swallow
    return ((1, 1),) if a and a == b else ()
