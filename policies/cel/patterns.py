"""Translate RE2 patterns of schema definitions to Python's, and match them in bounded time.

Only syntax that means the same in both, or that Python can express otherwise, is translated. RE2 takes linear time for
every pattern. Python's matcher backtracks: repetitions, and alternatives with a common beginning, give a text several ways
through a pattern. The number of ways is bounded independent of the text, and a pattern above the bound is refused.

Bundled patterns that are known to be fast match any text. Some others are evaluated in another way with the same result,
and the rest match only short texts.

Source: `re2/doc/syntax.txt` at 2025-11-05; Go 1.26 `regexp/syntax`.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import field

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk.structs import MutableStruct

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST: Final = 2_000  # characters of a text that a user's pattern, or one in a rule, is tried on
_MOST_WAYS: Final = 2e7
_CHEAP: Final = 20  # times that something is repeated exactly, which cost no more than a way
_MOST_EXPONENT: Final = 30.0  # e to the power of it is more than the most ways by far


def _ways(pieces: Sequence[str]) -> float:
    """Return how many ways lead through a pattern, given as its translated pieces, on a text of LONGEST characters."""
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
    return whole.ways() * (1 if anchored else LONGEST)


class _Level(MutableStruct):
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


_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
    "space": r"\t\n\v\f\r ",
}
_SPACES: Final = r"\t\n\f\r "  # without \v, which Python's \s has
_SAME: Final = frozenset("dDwWbBAnrtfva")
_REPEAT: Final = re.compile(r"\{[0-9]+(,[0-9]*)?\}")
_GROUP: Final = re.compile(r"\((\?:|\?P<[A-Za-z_]\w*>|\?<[A-Za-z_]\w*>)?")
# What Kubernetes' own types bring into many definitions: quantities, names of labels, reasons of conditions, DNS names;
# and durations, percentages and labels of Karpenter. Each decides at every character what comes next, so that it takes no
# long time although it repeats what repeats.
_QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
QUICK: Final = frozenset(
    {
        _QUANTITY,
        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        r"^([0-9]+(s|m|h))+$",
        r"^(([0-9]+(s|m|h))+|Never)$",
        r"^(([0-9]+(s|m|h))+)|(Never)$",
        r"^((\d{1,2}(\.\d{1,2})?|100(\.0{1,2})?)%||" + _QUANTITY.strip("^$") + ")$",
        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
    }
)


class PatternError(GpugateError):
    """A pattern cannot be translated; says what is in the way."""


@lru_cache(maxsize=512)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern that was translated before, ready for `search`."""
    return re.compile(translated(pattern, trusted=True), re.ASCII)


def translated(pattern: str, *, trusted: bool = False) -> str:
    """Write a pattern of RE2 for Python's `re` with `re.ASCII`.

    Args:
        pattern: the pattern.
        trusted: it is known to take no long time.

    Raises:
        PatternError: it uses what Python has not, or could take long.
    """
    flags, pieces = _pieces(pattern)
    translation = flags + "".join(pieces)
    try:
        re.compile(translation, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"it cannot be read: {error}") from None
    if not trusted and pattern not in QUICK and _ways(pieces) > _MOST_WAYS:
        raise PatternError("it repeats what repeats itself, or too much, which could take long")
    return translation


class Pattern(NamedTuple):
    """A pattern of an expression, and whether a match takes time by the length of the text, not by its square."""

    regex: re.Pattern[str]
    is_linear: bool


def pattern_of(text: str) -> Pattern:
    """Compile a pattern of RE2.

    Raises:
        PatternError: it is invalid, or could take long.
    """
    regex = re.compile(translated(text), re.ASCII)
    return Pattern(regex, text in QUICK or _ways(_pieces(text)[1]) <= LONGEST)


def _pieces(pattern: str) -> tuple[str, list[str]]:
    """Translate a pattern; return its flags and the translated pieces."""
    out = []
    flags = pattern[:4] if pattern.startswith(("(?i)", "(?s)")) else ""
    position = len(flags)
    while position < len(pattern):
        piece, position = _piece(pattern, position)
        out.append(piece)
    return flags, out


def _piece(pattern: str, at: int) -> tuple[str, int]:
    """Translate what begins at a place; return it and where the next thing begins."""
    sign = pattern[at]
    if sign == "\\":
        return _escape(pattern, at)
    if sign == "[":
        return _class(pattern, at)
    if sign == "(":
        match = _GROUP.match(pattern, at)
        if match is None or pattern.startswith("(?", match.end() - 1) or pattern[match.end() : match.end() + 1] == "?":
            raise PatternError("it has groups or flags that are not translated")
        return match[0].replace("(?<", "(?P<"), match.end()
    if sign == "$":
        return r"\Z", at + 1
    if sign in "*+?{":
        return _quantifier(pattern, at)
    return sign, at + 1


def _quantifier(pattern: str, at: int) -> tuple[str, int]:
    match = _REPEAT.match(pattern, at)
    if pattern[at] == "{" and match is None:
        return r"\{", at + 1
    quantifier = match[0] if match else pattern[at]
    end = at + len(quantifier)
    if pattern[end : end + 1] == "?":
        return f"{quantifier}?", end + 1
    if pattern[end : end + 1] in {"*", "+"}:
        raise PatternError("it repeats a repetition")
    return quantifier, end


def _escape(pattern: str, at: int) -> tuple[str, int]:
    sign = pattern[at + 1 : at + 2]
    if sign in {"s", "S"}:
        return (f"[{_SPACES}]" if sign == "s" else f"[^{_SPACES}]"), at + 2
    if sign == "z":
        return r"\Z", at + 2
    if sign in _SAME:
        return f"\\{sign}", at + 2
    if sign and not sign.isalnum():
        return re.escape(sign), at + 2
    raise PatternError(f"\\{sign} is not translated")


def _class(pattern: str, at: int) -> tuple[str, int]:
    out, position = "[", at + 1
    if pattern.startswith("^", position):
        out, position = "[^", position + 1
    first = position
    while position < len(pattern) and (pattern[position] != "]" or position == first):
        sign = pattern[position]
        named = re.match(r"\[:(\w+):\]", pattern[position:])
        if pattern.startswith("[:^", position):
            raise PatternError("a negated class by name is not translated")
        if named:
            if named[1] not in _CLASSES:
                raise PatternError(f"{named[0]} is not translated")
            out, position = out + _CLASSES[named[1]], position + named.end()
        elif sign == "\\":
            escaped, position = _escape(pattern, position)
            if escaped.startswith("[^") or escaped in {r"\Z", r"\A", r"\b", r"\B"}:
                raise PatternError(f"{pattern[position - 2 : position]} in a class is not translated")
            out += escaped.strip("[]") if escaped.startswith("[") else escaped
        else:
            # Python keeps these, doubled, for operations on classes.
            out, position = out + (f"\\{sign}" if sign in "[&|~]" else sign), position + 1
    if position >= len(pattern):
        raise PatternError("a class is not closed")
    if "--" in out[2:]:
        raise PatternError("-- in a class is not translated")
    return f"{out}]", position + 1


# Of the `schedule` of a budget (Karpenter): a name, or five words.
SCHEDULE: Final = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
_NAMES: Final = ("@annually", "@yearly", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_WORD, _SPACE, _LAST_WORD = 0b101010101, 0b010101010, 0b100000000
# Pattern -> one that finds the same, and at every character decides what comes next.
QUICKER: Final = {
    # Of the `priceAdjustment` of a NodeOverlay (Karpenter): `\d*\.?\d+` shares digits out in every way.
    r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$": (
        r"^(([+-]((\d*\.)?\d+))|(\+(\d*\.)?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$"
    ),
}


def refuses(pattern: str, text: str) -> bool:
    """Tell whether a pattern is known not to be in a text; what could take long to tell is taken to be."""
    if pattern == SCHEDULE:
        return not is_schedule(text)
    quicker = QUICKER.get(pattern)
    if quicker is None and pattern not in QUICK and len(text) > LONGEST:
        return False
    return not compiled(quicker or pattern).search(text)


def is_schedule(text: str) -> bool:
    """Tell whether SCHEDULE is found in a text: all ways to read it are followed at once.

    A bit stands for where a way may be: in the first word, behind the space after it, in the second word, and so on.
    """
    if text.startswith(_NAMES):
        return True
    ways = 0
    for sign in text:
        after = (ways & _WORD) << 1 & _SPACE if sign in " \t\n\f\r" else 0
        # `.` is any character but a line break, and the first word may begin anywhere.
        ways = after if sign == "\n" else after | (ways & _WORD) | (ways & _SPACE) << 1 | 1
    return bool(ways & _LAST_WORD)
