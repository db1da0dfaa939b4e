"""Tells in little time which texts a schema's pattern refuses, whatever their length.

RE2 takes linear time for every pattern. Python's matcher does for those that are known to be quick; some others of the
definitions that come with gpugate are judged in another way, with the same result; the rest only on short texts.
"""

from __future__ import annotations

from typing import Final

from gpugate.webhook.schemas.backtracking import LONGEST
from gpugate.webhook.schemas.patterns import QUICK, compiled

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
