"""Names files as services on the other side of a report do: relative to where the run began."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote


def relative(file: str, root: Path) -> str:
    """Return a path from `root` on, with slashes, when the file is below it; else as it was given."""
    path = Path(file)
    if path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    return path.as_posix()


def uri(file: str, root: Path) -> str:
    """Return a path as the reference to a file in an URI: relative below `root`, else absolute."""
    path = relative(file, root)
    return f"file://{quote(path)}" if path.startswith("/") else quote(path)
