"""Tells what is in a work tree from what is not, whatever links say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

GIT: Final = ".git"


def is_within(path: str, top: str) -> bool:
    """Tell whether a path is in a work tree when all links are followed.

    What git keeps in `.git` is not: a commit cannot hold it, and the credentials of a remote may stand there.

    Args:
        path: need not exist.
        top: the real path of the work tree.

    Raises:
        ValueError: the path holds a character that none can have.
    """
    real, base = Path(os.path.realpath(path)), Path(top)
    return real.is_relative_to(base) and GIT not in real.relative_to(base).parts
