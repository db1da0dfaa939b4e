"""RE2's patterns, which definitions are written in, as Python's.

Only what means the same in both, or can be said otherwise in Python, is translated. RE2 takes linear time; Python's
matcher may not, so that patterns of a user's own definitions must not leave it many ways to try.

Source: `re2/doc/syntax.txt` at 2025-11-05; Go 1.26 `regexp/syntax`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from gpugate.policies.engine.errors import GpugateError
from gpugate.webhook.schemas.backtracking import is_slow

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
    out, position, prefix = [], 0, ""
    if pattern.startswith(("(?i)", "(?s)")):
        prefix, position = pattern[:4], 4
    while position < len(pattern):
        piece, position = _piece(pattern, position)
        out.append(piece)
    text = prefix + "".join(out)
    try:
        re.compile(text, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"it cannot be read: {error}") from None
    if not trusted and pattern not in QUICK and is_slow(out):
        raise PatternError("it repeats what repeats itself, or too much, which could take long")
    return text


def _piece(pattern: str, at: int) -> tuple[str, int]:
    """Translate what begins at a place; return it and where the next thing begins."""
    sign = pattern[at]
    if sign == "\\":
        return _escape(pattern, at)
    if sign == "[":
        return _class(pattern, at)
    if sign == "(":
        found = _GROUP.match(pattern, at)
        if found is None or pattern.startswith("(?", found.end() - 1) or pattern[found.end() : found.end() + 1] == "?":
            raise PatternError("it has groups or flags that are not translated")
        return found[0].replace("(?<", "(?P<"), found.end()
    if sign == "$":
        return r"\Z", at + 1
    if sign in "*+?{":
        return _quantifier(pattern, at)
    return sign, at + 1


def _quantifier(pattern: str, at: int) -> tuple[str, int]:
    found = _REPEAT.match(pattern, at)
    if pattern[at] == "{" and found is None:
        return r"\{", at + 1
    text = found[0] if found else pattern[at]
    end = at + len(text)
    if pattern[end : end + 1] == "?":
        return f"{text}?", end + 1
    if pattern[end : end + 1] in {"*", "+"}:
        raise PatternError("it repeats a repetition")
    return text, end


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
