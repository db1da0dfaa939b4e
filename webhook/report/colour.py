"""Colours for a terminal, and when to use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

When = Literal["auto", "always", "never"]


def wanted(when: When, *, is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """Decide on colours: what the user says, then NO_COLOR, FORCE_COLOR (not 0), TERM, then the terminal."""
    if when != "auto":
        return when == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return is_terminal and environment.get("TERM") != "dumb"


@dataclass(frozen=True, slots=True)
class Paint:
    """Wraps text in the codes of a colour, or leaves it as it is."""

    enabled: bool = False

    def __call__(self, text: str, *codes: int) -> str:
        """Return the text in the colour of some SGR codes (ECMA-48, 8.3.117)."""
        if not self.enabled or not text:
            return text
        return f"\x1b[{';'.join(map(str, codes))}m{text}\x1b[0m"


BOLD = 1
DIM = 2
RED = 31
GREEN = 32
YELLOW = 33
BLUE = 34
CYAN = 36
