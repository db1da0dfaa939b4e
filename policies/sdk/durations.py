"""Durations as Go writes them: `30m`, `1h30m`, `1.5h`, `-2s`.

Source: Go 1.26 `time.ParseDuration`, with which Karpenter parses its durations.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Final, TypeAlias

import msgspec

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,  # micro sign
    "\u03bcs": 10**3,  # Greek mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
MINUTE: Final = _UNITS["m"]
HOUR: Final = _UNITS["h"]
# The format of a duration in configuration: hours, minutes and seconds in this order, at least one of them.
Duration: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^(?=[0-9])([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$(?!\n)")
]

_LONGEST = 2**63 - 1
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)(?![a-z])")
_MAX_LENGTH = 256  # characters; many more than a duration needs


class DurationError(ValueError):
    """The text is not a duration. The message says what to write."""


def parse(text: str) -> int:
    """Return a duration in nanoseconds.

    Raises:
        DurationError: the text is not one or more numbers with units, or the duration is longer than 292 years.
    """
    sign, digits = (-1, text[1:]) if text[:1] == "-" else (1, text[1:] if text[:1] == "+" else text)
    if digits == "0":
        return 0
    total, position = 0, 0
    while position < len(digits) <= _MAX_LENGTH:
        part = _PART.match(digits, position)
        if part is None or not (part[1] or part[2]):
            break
        amount = Fraction(int(part[1] or "0")) + Fraction(int(part[2] or "0"), 10 ** len(part[2] or ""))
        total += int(amount * _UNITS[part[3]])
        position = part.end()
    if not digits or position < len(digits):
        raise DurationError("is not a duration: write a number with a unit, such as 30m or 12h")
    if total > _LONGEST:
        raise DurationError("is longer than 292 years, the maximum")
    return sign * total
