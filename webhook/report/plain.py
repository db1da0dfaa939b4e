"""Escape text from manifests for terminals and CI logs, colour it, and align columns.

CI systems execute commands in a log. GitHub's runner accepts `::` at the beginning of a line, also after white space,
and `##[` anywhere (actions/runner v2.330 ActionCommand.cs, OutputManager.cs); the agent of Azure Pipelines accepts
`##vso[` anywhere, and `##[` for its formats (azure-pipelines-agent v4 CommandStringConvertor.cs); TeamCity accepts
`##teamcity[`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_COMMAND: Final = re.compile(r"#(?=#[\w.-]*\[)|^(\s*):(?=:)")


def plain(text: str) -> str:
    """Replace control sequences of terminals and CI systems, and invisible characters; the length does not change.

    The caller must ensure that the text before it does not make the line a command.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
    if "##" in text or "::" in text:
        text = _COMMAND.sub("\\g<1>\N{REPLACEMENT CHARACTER}", text)
    return text


def plain_json(text: str) -> str:
    """Escape JSON so that no string in it is a command for a CI system, without changing its meaning."""
    return text.replace("##", "#\\u0023")


def plain_xml(text: str) -> str:
    """Escape XML so that no text in it is a command for a CI system, without changing its meaning."""
    return text.replace("##", "#&#35;")


When = Literal["auto", "always", "never"]


def wanted(when: When, *, is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """Tell whether to use colours: by the user's choice, then NO_COLOR, FORCE_COLOR (not 0), TERM and the terminal."""
    if when != "auto":
        return when == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return is_terminal and environment.get("TERM") != "dumb"


class Paint(Struct, frozen=True):
    """Wrap text in the codes of a colour, or return it unchanged."""

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
    """Yield the lines of a table.

    `right` are right-aligned columns, `colours` the colours of columns, in which zeros and `-` have none.
    """
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
