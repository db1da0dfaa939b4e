"""How long Python's matcher could take for a pattern: it tries one way after the other to match a text.

Repetitions, and alternatives that begin alike, give a text several ways through a pattern. Counted is how many there
are at most, whatever the text; what is repeated in several ways has too many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST: Final = 2_000  # characters of a text that a user's pattern, or one in a rule, is tried on
_MOST_WAYS: Final = 2e7
_CHEAP: Final = 20  # times that something is repeated exactly, which cost no more than a way
_MOST_EXPONENT: Final = 30.0  # e to the power of it is more than the most ways by far


def is_slow(pieces: Sequence[str]) -> bool:
    """Tell whether a pattern, given as its translated pieces, could take long on a text of LONGEST characters."""
    levels = [_Level()]
    for piece in pieces:
        level = levels[-1]
        if piece.startswith("("):
            levels.append(_Level())
        elif piece == ")":
            closed = levels.pop().ways()
            levels[-1].add(closed, "")
        elif piece == "|":
            level.alternative()
        elif piece[0] in "*+?{":
            level.repeat(*_times(piece))
        elif piece not in {"^", r"\A", r"\Z", r"\b", r"\B"}:
            level.add(1, piece)
    whole = levels[0]
    anchored = pieces[:1] in (["^"], [r"\A"]) and not whole.before
    return whole.ways() * (1 if anchored else LONGEST) > _MOST_WAYS


@dataclass(slots=True)
class _Level:
    """What stands in one pair of brackets: alternatives, and of the last one its parts so far."""

    before: list[tuple[float, str]] = field(default_factory=list)
    product: float = 1
    last: float = 1
    first: str | None = None
    parts: int = 0

    def add(self, ways: float, sign: str) -> None:
        """Add a part; `sign` is the character that it is, where it is one and no class."""
        self.product *= self.last
        self.last = ways
        self.parts += 1
        if self.first is None:
            self.first = "" if sign[:1] in {"[", "."} or (sign[:1] == "\\" and sign[1:].isalnum()) else sign.lower()

    def repeat(self, least: int, most: float) -> None:
        """Repeat the last part."""
        if self.parts == 1 and not least:
            self.first = ""
        counts = LONGEST if most == math.inf else most - least + 1
        if self.last == 1:
            self.last = max(counts, 1 if most == math.inf else most // _CHEAP)
        elif most > 1:
            exponent = most * math.log(self.last)
            self.last = math.inf if exponent > _MOST_EXPONENT else self.last**most * counts
        else:
            self.last += counts - 1

    def alternative(self) -> None:
        """End an alternative and begin another one."""
        self.before.append((self.product * self.last, self.first or ""))
        self.product, self.last, self.first, self.parts = 1, 1, None, 0

    def ways(self) -> float:
        """Return how many ways lead through all of it: where the first character decides, through one alternative."""
        all_of = [*self.before, (self.product * self.last, self.first or "")]
        firsts = {first for _, first in all_of}
        decided = "" not in firsts and len(firsts) == len(all_of)
        return max(ways for ways, _ in all_of) if decided else sum(ways for ways, _ in all_of)


def _times(piece: str) -> tuple[int, float]:
    """Read how often a quantifier repeats at least and at most."""
    if piece[0] != "{":
        return (1 if piece[0] == "+" else 0), (1 if piece[0] == "?" else math.inf)
    least, comma, most = piece.rstrip("?").strip("{}").partition(",")
    return int(least), float(most) if most else math.inf if comma else int(least)
