"""Tells whether a file is still the one that was read, without reading it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

Signature: TypeAlias = "tuple[int, ...] | None"


def signature(path: Path) -> Signature:
    """Return device, inode, size and times of change (ns) of what a path leads to now; None when that is nothing.

    Links are followed, because the kubelet changes a mounted ConfigMap or Secret by turning a link to a new directory.
    """
    try:
        found = os.stat(path)  # noqa: PTH116 -- a path's own method makes another object on each of many calls
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
