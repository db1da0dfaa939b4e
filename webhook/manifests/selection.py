"""Which of the files below some paths are wanted."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpugate.policies.sdk import globs

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Selection:
    """Which files are wanted, of those that paths stand for.

    Attributes:
        exclude: patterns of files and directories to leave out. One without a slash is for a name at any depth, one
            with a slash for a path from the working directory on, in which `**` stands for any number of directories.
        force_exclude: a program named the files one by one, as pre-commit does: leave out those too, and pass over what is no
            manifest.
        ignored: real paths of files and directories to leave out, because git ignores them.
        changed: real paths; only these files are wanted where it is given.
    """

    exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    ignored: frozenset[str] = field(default=frozenset(), repr=False)
    changed: frozenset[str] | None = field(default=None, repr=False)

    def excludes(self, path: str) -> bool:
        """Tell whether a pattern is for a path, or for a directory above it."""
        if not self.exclude:
            return False
        return any(_fits(pattern, path) for pattern in self.exclude)

    def is_unchanged(self, path: str) -> bool:
        """Tell whether only changed files are wanted, and this is none."""
        return self.changed is not None and os.path.realpath(path) not in self.changed


def _fits(pattern: str, path: str) -> bool:
    seen = os.path.abspath(path) if pattern.startswith("/") else os.path.relpath(path)  # noqa: PTH100 -- `..` is to go
    parts, wanted = _parts(seen), _parts(pattern)
    if "/" not in pattern.rstrip("/"):
        return any(globs.matches(wanted[0], part) for part in parts) if wanted else False
    return any(_matches(wanted, parts[:length]) for length in range(1, len(parts) + 1))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", os.curdir}]


def _matches(wanted: Sequence[str], parts: Sequence[str]) -> bool:
    """Match directory by directory, in a time that no pattern can blow up: `reached` are the places in the pattern."""
    reached = _past_any(wanted, {0})
    for part in parts:
        fitting = {i for i in reached if i < len(wanted) and globs.matches(wanted[i], part)}
        reached = _past_any(wanted, {i if wanted[i] == "**" else i + 1 for i in fitting})
    return len(wanted) in reached


def _past_any(wanted: Sequence[str], reached: set[int]) -> set[int]:
    """Add the places behind each `**`, which may stand for no directory at all."""
    found, waiting = set(reached), list(reached)
    while waiting:
        place = waiting.pop()
        if place < len(wanted) and wanted[place] == "**" and place + 1 not in found:
            found.add(place + 1)
            waiting.append(place + 1)
    return found
