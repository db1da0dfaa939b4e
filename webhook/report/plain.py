"""Escape text from manifests for terminals and CI logs, colour it, and align columns.

CI systems obey lines of a log. GitHub's runner takes `::` at the beginning of a line, behind white space too, and `##[`
anywhere (actions/runner v2.330 ActionCommand.cs, OutputManager.cs); the agent of Azure Pipelines takes `##vso[` anywhere,
and `##[` for its formats (azure-pipelines-agent v4 CommandStringConvertor.cs); TeamCity takes `##teamcity[`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_COMMAND: Final = re.compile(r"#(?=#[\w.-]*\[)|^(\s*):(?=:)")


def plain(text: str) -> str:
    """Replace what a terminal or a CI system would act on, and what cannot be seen; the length stays, so that carets fit.

    What comes before the text on its line has to be such that the line is no command.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
    if "##" in text or "::" in text:
        text = _COMMAND.sub("\\g<1>\N{REPLACEMENT CHARACTER}", text)
    return text


def plain_json(text: str) -> str:
    """Write JSON so that no string in it is a command for a CI system; it means the same."""
    return text.replace("##", "#\\u0023")


def plain_xml(text: str) -> str:
    """Write XML so that no text in it is a command for a CI system; it means the same."""
    return text.replace("##", "#&#35;")


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


class Paint(Struct, frozen=True):
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


def aligned(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    paint: Paint,
    *,
    right: Collection[int] = (),
    colours: Mapping[int, Codes] | None = None,
) -> Iterator[str]:
    """Yield the lines of a table; `right` are columns of numbers, `colours` those of columns, but for zeros and `-`."""
    cells = [list(map(plain, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    yield paint(_line(header, widths, right).rstrip(), DIM)
    for row in cells:
        padded = [
            _pad(cell, width, index in right) for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        painted = [
            paint(text, *(colours or {}).get(index, ())) if row[index] not in {"0", "-"} else text
            for index, text in enumerate(padded[:-1])
        ]
        last = len(padded) - 1
        painted.append(paint(padded[last].rstrip(), *(colours or {}).get(last, ())))
        yield "  ".join(painted).rstrip()


def _line(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> str:
    return "  ".join(
        _pad(cell, width, index in right) for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    )


def _pad(cell: str, width: int, is_right: bool) -> str:  # noqa: FBT001 -- a cell's side
    return cell.rjust(width) if is_right else cell.ljust(width)


if TYPE_CHECKING:
    Codes = tuple[int, ...]
