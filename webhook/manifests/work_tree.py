"""Finds the git work tree that a path is in, without running git."""

from __future__ import annotations

import os
from pathlib import Path


def work_tree(path: str) -> str | None:
    """Return the real path of the work tree that a path is in, as its `.git` shows; None where there is none."""
    try:
        real = Path(os.path.realpath(path))
        return next((str(above) for above in (real, *real.parents) if (above / ".git").exists()), None)
    except ValueError:
        return None  # a NUL, which no path has
