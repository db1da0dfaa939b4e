"""This repository as a user would clone it, with what is not committed yet."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
_IDENTITY = ("-c", "user.name=tests", "-c", "user.email=tests@example.com", "-c", "commit.gpgsign=false")


def git(directory: Path, *arguments: str) -> str:
    """Run git and return what it wrote."""
    command = ["git", "-C", str(directory), *_IDENTITY, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 -- fixed words


def commit(directory: Path) -> None:
    """Make a directory a repository with all its files in one commit."""
    git(directory, "init", "--quiet", "--initial-branch", "main")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", "all")


def copy_of_this_repository(directory: Path) -> Path:
    """Copy every file that git does not ignore, links as links, and commit them."""
    names = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, directory / name
        # Somebody may have deleted it and not committed that.
        if source.exists() or source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    commit(directory)
    return directory
