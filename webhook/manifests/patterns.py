"""Finds what a pattern such as `apps/**/*.yaml` stands for."""

from __future__ import annotations

import glob
import os
from typing import Final

_ANY: Final = "**/"


def matches(pattern: str) -> list[str]:
    """Return the files and directories that a pattern stands for, sorted; `**` is any number of directories.

    Hidden ones are not among them. `**` follows no links, which may lead in a circle: `glob` of Python 3.14 would go around
    until a path is too long, and where there are two of them in every way that there is.
    """
    return sorted(_found(f"{pattern}/*" if pattern == "**" or pattern.endswith("/**") else pattern))


def _found(pattern: str) -> set[str]:
    before, any_depth, after = pattern.partition(_ANY)
    if not any_depth or (before and not before.endswith("/")):
        return set(glob.glob(pattern))  # noqa: PTH207 -- Path.glob refuses absolute patterns
    while after.startswith(_ANY):
        after = after.removeprefix(_ANY)
    found: set[str] = set()
    for start in glob.glob(before) if before else [os.curdir]:  # noqa: PTH207 -- as above
        for folder, folders, _ in os.walk(start):
            folders[:] = [name for name in folders if not name.startswith(".")]
            inside = os.path.join(glob.escape(folder), after)  # noqa: PTH118 -- Path drops what ends in a slash
            found |= _found(inside if before else inside.removeprefix("./"))
    return found
