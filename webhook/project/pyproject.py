"""Reads `[tool.gpugate]` of a pyproject.toml, and finds the line of a key in it."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.project.errors import ProjectFileError

if TYPE_CHECKING:
    from pathlib import Path as File

    from gpugate.policies.sdk.field import Path

TABLE: Final = ("tool", "gpugate")
_HEADER: Final = re.compile(r"[ \t]*\[{1,2}([^\[\]#]+)\]{1,2}[ \t]*(?:#.*)?")
_KEY: Final = re.compile(r"""[ \t]*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)[ \t]*=""")
_AT: Final = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL
)


def table(file: File, data: bytes) -> dict[str, Any] | None:
    """Return the table, None where there is none.

    Raises:
        ProjectFileError: the file is not TOML, or the table is none.
    """
    try:
        document = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ProjectFileError(f"{file}:{line}:1: not UTF-8 text: save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        found = _AT.fullmatch(str(error))
        what = found["what"] if found else str(error)
        # Where the file ends too early, its last line is all there is to name.
        line = int(found["line"]) if found and found["line"] else data.rstrip().count(b"\n") + 1
        column = found["column"] if found and found["column"] else "1"
        raise ProjectFileError(f"{file}:{line}:{column}: not TOML: {what[:1].lower()}{what[1:]}") from None
    except RecursionError:
        raise ProjectFileError(f"{file}: nested too deeply") from None
    tool = document.get("tool")
    ours = tool.get("gpugate") if isinstance(tool, dict) else None
    if ours is None or isinstance(ours, dict):
        return ours
    raise ProjectFileError(f"{file}: tool.gpugate must be a table: write [tool.gpugate], and keys below it")


def place(text: str, path: Path) -> tuple[int, int]:
    """Return line and column, from 1, of a key of the table; of its table, or 1 and 1, where it is written otherwise.

    The parser of the standard library keeps no places, so that this looks for the key below its header. What is within
    a value, such as a member of an inline table, has the place of the key that holds it.
    """
    at: tuple[str, ...] = ()
    best, where = 0, (1, 1)
    wanted = (*TABLE, *(part for part in path if isinstance(part, str)))
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.fullmatch(line)
        key = None if header else _KEY.match(line)
        if header:
            at = tuple(part.strip().strip("\"'") for part in header[1].split("."))
            found = at
        elif key:
            found = (*at, key[1].strip("\"'"))
        else:
            continue
        if len(found) > best and wanted[: len(found)] == found and found[: len(TABLE)] == TABLE:
            best, where = len(found), (number, len(line) - len(line.lstrip()) + 1)
    return where
