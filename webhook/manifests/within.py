"""The rule for paths that a repository names: inside its work tree, not in `.git`, regular files and directories only.

The author of a change writes the project file, charts, kustomizations, tests and links of the tree. The machine that checks
the change reads what they name, and reports quote it. Arguments of the command line are trusted, because the user or the
workflow writes them. A link in the tree is content of the tree.

A commit contains neither `.git`, in any case (git refuses `.GIT` too, core.protectHFS and core.protectNTFS), nor pipes,
devices or hard links to other files, so these need no rule of their own inside the tree.
"""

from __future__ import annotations

import os
import stat
from enum import Enum
from pathlib import Path
from typing import Final

from gpugate.policies.engine.config import GpugateError


def work_tree(path: str) -> str | None:
    """Return the real path of the work tree that a path is in, as its `.git` shows; None where there is none."""
    try:
        real = Path(os.path.realpath(path))
        return next((str(above) for above in (real, *real.parents) if (above / ".git").exists()), None)
    except ValueError:
        return None  # a NUL, which no path has


GIT: Final = ".git"
NO_NAME: Final = "is not a valid file name: it contains a character that no file name can have"
_OUTSIDE: Final = "leads out of the repository"
_OF_GIT: Final = "is in .git, which can hold credentials"


class LinkError(GpugateError):
    """A file that the command line names is, or is below, a link of the tree that leads out of it."""


class Wanted(Enum):
    """What a path must lead to, if it leads to anything."""

    FILE = "a regular file"
    DIRECTORY = "a directory"
    EITHER = "a regular file or a directory"


def is_git(name: str) -> bool:
    """Tell whether a name in a directory is git's own, also where the file system ignores case."""
    return name.lower() == GIT


def is_within(path: str, top: str) -> bool:
    """Tell whether a path is in a work tree when all links are followed, and not in its `.git`.

    Args:
        path: need not exist.
        top: the real path of the work tree.

    Raises:
        ValueError: the path holds a character that none can have.
    """
    return not _wrong_place(os.path.realpath(path), top)


def tree_of(path: str) -> str | None:
    """Return the real path of the tree that a path belongs to, None where nothing says so.

    That is its git work tree; without git, as in an unpacked archive, the working directory where that is above it.
    """
    tree = work_tree(path)
    if tree is not None:
        return tree
    try:
        here, real = os.path.realpath(os.curdir), os.path.realpath(path)
    except (OSError, ValueError):
        return None  # the working directory was removed, or the path holds a NUL
    return here if Path(real).is_relative_to(here) else None


def refusal(path: str, top: str, wanted: Wanted = Wanted.EITHER) -> str:
    """Return why a path that a repository names is not read, as the end of a sentence; empty where it may be.

    What does not exist is not refused: the reader says so.

    Args:
        path: as seen from the working directory.
        top: the real path of the work tree.
        wanted: what it must lead to.
    """
    try:
        real = os.path.realpath(path)
        wrong = _wrong_place(real, top)
        return wrong or _wrong_kind(real, wanted)
    except ValueError:
        return NO_NAME


def pattern_refusal(pattern: str, top: str) -> str:
    """Return why a pattern that a repository names is not expanded; empty where it may be.

    What its first part without wildcards leads to is inside the tree, and nothing behind it goes up again.
    """
    parts = Path(pattern).parts
    fixed = next((index for index, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts))
    if os.pardir in parts[fixed:]:
        return "has `..` behind a wildcard"
    return refusal(str(Path(*parts[:fixed])) if fixed else os.curdir, top)


def link_out(path: str) -> str | None:
    """Return the first link on a path that leads out of the tree that holds the link; None where none does.

    A link outside of any work tree, such as those of a mounted ConfigMap, is the machine's own and may lead anywhere.
    """
    at = Path(os.path.abspath(path))  # noqa: PTH100 -- pathlib resolves links
    try:
        below = Path(at.anchor)
        for part in at.parts[1:]:
            entry = below / part
            if entry.is_symlink():
                top = tree_of(str(below))
                if top is not None and not is_within(str(entry), top):
                    return os.path.relpath(entry)
                entry = Path(os.path.realpath(entry))
            below = entry
    except (OSError, ValueError):
        return None  # no such file, which reading it reports
    return None


def refuse_link(path: Path, name: str) -> None:
    """Refuse a path of the command line that is a link out of the tree that holds it, or below one.

    Args:
        path: as the user wrote it.
        name: what gives it, such as a flag, for the message.

    Raises:
        LinkError: it is.
    """
    link = link_out(str(path))
    if link is not None:
        raise LinkError(f"{name} {path}: {link} is a link out of the repository: name what it leads to")


def _wrong_place(real: str, top: str) -> str:
    path, base = Path(real), Path(top)
    if not path.is_relative_to(base):
        return _OUTSIDE
    return _OF_GIT if any(map(is_git, path.relative_to(base).parts)) else ""


def _wrong_kind(real: str, wanted: Wanted) -> str:
    try:
        mode = os.stat(real).st_mode  # noqa: PTH116 -- of a text
    except OSError:
        return ""
    is_file, is_directory = stat.S_ISREG(mode), stat.S_ISDIR(mode)
    fits = {
        Wanted.FILE: is_file,
        Wanted.DIRECTORY: is_directory,
        Wanted.EITHER: is_file or is_directory,
    }
    return "" if fits[wanted] else f"is not {wanted.value}"
