"""What lies in the installed tree."""

from __future__ import annotations

import gzip
import stat
import tarfile
from importlib.metadata import distributions
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Installers, what builds packages, and what tests them.
UNWANTED = frozenset({"pip", "setuptools", "wheel", "distribute", "ensurepip", "pytest", "hypothesis", "mypy", "ruff"})
_INTERPRETERS = (b"sh", b"bash", b"dash", b"perl")


def packages(tree: Path) -> Path:
    """Return the folder that everything is imported from."""
    return next((tree / "lib").glob("python3.*/site-packages"))


def installed(tree: Path) -> dict[str, str]:
    """Return the version of each distribution, by its name as it is written in its metadata."""
    return {each.name: each.version for each in distributions(path=[str(packages(tree))])}


def files(tree: Path) -> Iterator[Path]:
    return (path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())


def set_user_or_group(tree: Path) -> list[Path]:
    return [path for path in tree.rglob("*") if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)]


def writable_by_others(tree: Path) -> list[Path]:
    return [path for path in tree.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o022]


def runnable(tree: Path) -> list[Path]:
    """Return what can be run although it is no program of ours."""
    return [path for path in files(tree / "lib") if path.stat().st_mode & 0o111]


def shell_scripts(tree: Path) -> list[Path]:
    return [path for path in files(tree) if path.suffix in {".sh", ".bat", ".ps1"} or _asks_for_a_shell(path)]


def without_bytecode(tree: Path) -> list[Path]:
    """Return the modules that Python would compile again at each start."""
    cached = {path.parent.parent / path.name.split(".")[0] for path in tree.rglob("__pycache__/*.pyc")}
    return [path for path in tree.rglob("*.py") if path.with_suffix("") not in cached]


def listing(tree: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of everything, to see whether something was written."""
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in tree.rglob("*")}


def compressed_bytes(tree: Path) -> int:
    """Return how large its layer of the image would be."""
    counted = _Counted()
    with gzip.GzipFile(fileobj=cast("IO[bytes]", counted), mode="wb", compresslevel=6) as compressed:  # noqa: SIM117 -- closed first
        with tarfile.open(fileobj=cast("IO[bytes]", compressed), mode="w|") as archive:
            archive.add(tree, arcname=".")
    return counted.bytes


class _Counted:
    def __init__(self) -> None:
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self.bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """There is nothing to hold back."""


def _asks_for_a_shell(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline(100)
    return first.startswith(b"#!") and any(name in first.split(b"/")[-1].split() for name in _INTERPRETERS)
