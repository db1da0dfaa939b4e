"""Finds the file of a project: the nearest one, in the working directory or above."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.webhook.manifests.bounded_file import MAX_BYTES, read_regular
from gpugate.webhook.manifests.within import link_out
from gpugate.webhook.project.errors import ProjectFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    for place in way_up(directory, environment.get("HOME", "")):
        found = _in(directory, Path(os.path.relpath(place, directory)))
        if found is not None:
            return found
    return None


def _in(directory: Path, shown: Path) -> Found | None:
    file, pyproject = shown / FILE, shown / PYPROJECT
    in_pyproject = speaks_of_gpugate(directory, pyproject)
    if (directory / file).is_file():
        passed = f"{pyproject}: [tool.gpugate] is not read, because {FILE} beside it wins" if in_pyproject else ""
        return Found(file, (passed,) if passed else ())
    for name in _MISSPELT:
        if (directory / shown / name).is_file():
            raise ProjectFileError(f"{shown / name}: is not read under this name: call it {FILE}")
    return Found(pyproject) if in_pyproject else None


def speaks_of_gpugate(directory: Path, pyproject: Path) -> bool:
    """Tell whether a pyproject.toml has `[tool.gpugate]`; the parser is asked only where the word occurs.

    Raises:
        ProjectFileError: it has the word, and is not TOML.
    """
    if link_out(str(directory / pyproject)) is not None:
        return False  # what it leads to is not the project's
    try:
        # More than a project file may have, so that whoever reads it says that it is too large.
        data = read_regular(directory / pyproject, MAX_BYTES)
    except OSError:
        return False
    if _WORD not in data:
        return False
    from gpugate.webhook.project.pyproject import table  # noqa: PLC0415 -- few projects need it

    return table(pyproject, data) is not None


def way_up(directory: Path, home: str) -> list[Path]:
    """Return the directories to look into, nearest first."""
    top = Path(home).resolve() if home else None
    way: list[Path] = []
    for place in (directory, *directory.parents):
        way.append(place)
        if (place / ".git").exists() or place == top:
            return way
    return way[:1]
