"""Find the project file: the nearest one, in the working directory or above."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.manifests.bounded_file import MAX_BYTES, read_regular
from gpugate.webhook.manifests.within import link_out

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path as File

    from gpugate.policies.sdk.field import Path as FieldPath


class ProjectFileError(GpugateError):
    """A project file cannot be read, or what it says is refused; the text begins with file, line and column."""


class VariableError(GpugateError):
    """A variable of the environment holds what its setting does not take."""


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
    import tomllib  # noqa: PLC0415 -- only a pyproject.toml needs it, and it costs start-up time

    try:
        document = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ProjectFileError(f"{file}:{line}:1: not UTF-8 text: save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        match = _AT.fullmatch(str(error))
        message = match["what"] if match else str(error)
        # Where the file ends too early, its last line is all there is to name.
        line = int(match["line"]) if match and match["line"] else data.rstrip().count(b"\n") + 1
        column = match["column"] if match and match["column"] else "1"
        raise ProjectFileError(f"{file}:{line}:{column}: not TOML: {message[:1].lower()}{message[1:]}") from None
    except RecursionError:
        raise ProjectFileError(f"{file}: nested too deeply") from None
    tool = document.get("tool")
    ours = tool.get("gpugate") if isinstance(tool, dict) else None
    if ours is None or isinstance(ours, dict):
        return ours
    raise ProjectFileError(f"{file}: tool.gpugate must be a table: write [tool.gpugate], and keys below it")


def location_of(text: str, path: FieldPath) -> tuple[int, int]:
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
            key_path = at
        elif key:
            key_path = (*at, key[1].strip("\"'"))
        else:
            continue
        if len(key_path) > best and wanted[: len(key_path)] == key_path and key_path[: len(TABLE)] == TABLE:
            best, where = len(key_path), (number, len(line) - len(line.lstrip()) + 1)
    return where


FILE: Final = ".gpugate.yaml"
PYPROJECT: Final = "pyproject.toml"
VARIABLE: Final = "GPUGATE_CONFIG"
_MISSPELT: Final = (".gpugate.yml", "gpugate.yaml", "gpugate.yml")
_WORD: Final = b"gpugate"


class Found(NamedTuple):
    """A file, as seen from the working directory, and sentences on what beside it is not read."""

    file: Path
    remarks: tuple[str, ...] = ()


def find(directory: Path, environment: Mapping[str, str]) -> Found | None:
    """Return the file that holds in a directory, or None.

    The one that GPUGATE_CONFIG names; else the nearest `.gpugate.yaml`, or pyproject.toml with `[tool.gpugate]`, on the
    way up to the root of the repository or to $HOME. Where neither is above, only the directory itself is looked into,
    because above it may be directories in which others can write. Of both beside each other, `.gpugate.yaml` wins.

    Raises:
        ProjectFileError: a file is called almost so, and would not be read.
    """
    named = environment.get(VARIABLE)
    if named:
        return Found(Path(named))
    for folder in way_up(directory, environment.get("HOME", "")):
        project_file = _in(directory, Path(os.path.relpath(folder, directory)))
        if project_file is not None:
            return project_file
    return None


def _in(directory: Path, folder: Path) -> Found | None:
    file, pyproject = folder / FILE, folder / PYPROJECT
    in_pyproject = speaks_of_gpugate(directory, pyproject)
    if (directory / file).is_file():
        passed = (
            f"{pyproject}: [tool.gpugate] is not read, because {FILE} in the same directory takes precedence"
            if in_pyproject
            else ""
        )
        return Found(file, (passed,) if passed else ())
    for name in _MISSPELT:
        if (directory / folder / name).is_file():
            raise ProjectFileError(f"{folder / name}: gpugate does not read a file with this name: rename it to {FILE}")
    return Found(pyproject) if in_pyproject else None


def speaks_of_gpugate(directory: Path, pyproject: Path) -> bool:
    """Tell whether a pyproject.toml has `[tool.gpugate]`; the parser is asked only where the word occurs.

    Raises:
        ProjectFileError: it has the word, and is not TOML.
    """
    if link_out(str(directory / pyproject)) is not None:
        return False  # what it leads to is not the project's
    try:
        # More than a project file may have, so that reading it reports that it is too large.
        data = read_regular(directory / pyproject, MAX_BYTES)
    except OSError:
        return False
    if _WORD not in data:
        return False

    return table(pyproject, data) is not None


def way_up(directory: Path, home: str) -> list[Path]:
    """Return the directories to look into, nearest first."""
    top = Path(home).resolve() if home else None
    way: list[Path] = []
    for folder in (directory, *directory.parents):
        way.append(folder)
        if (folder / ".git").exists() or folder == top:
            return way
    return way[:1]
