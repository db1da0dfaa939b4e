"""Reads small files that belong together, such as a certificate and its key, while somebody may be replacing them.

The kubelet replaces a mounted Secret by turning one link, `..data`, to another directory, and removes the old one
(`k8s.io/kubernetes` pkg/volume/util/atomic_writer.go, v1.36). So links are followed first, and then the files of one
folder are read from the directory that they led to, held open: all are of before or all of after.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The most that a Secret can hold (`k8s.io/api` core/v1 MaxSecretSize).
MOST_BYTES: Final = 1024 * 1024
_ATTEMPTS: Final = 20
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Nothing that is opened by mistake may hold the process up.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class FileError(Exception):
    """A file cannot be read, or is none that should be; the text begins with its path."""


class _MissingError(FileError):
    """A file is not there, or not any more."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a path leads to: a directory without any link in it, and a name there."""

    given: Path
    directory: str
    name: str


def read_together(paths: Sequence[Path]) -> list[bytes]:
    """Return the content of each file; those of one folder are from one moment.

    Raises:
        FileError: one of them is missing, may not be read, is no regular file or larger than 1 MiB, or a link leads
            out of the folder that was named.
    """
    before: list[_Place] = []
    said = _MissingError(f"{paths[0]}: replaced faster than it can be read")
    for _ in range(_ATTEMPTS):
        try:
            places = [_resolved(path) for path in paths]
            # A link that was turned between two of them leads to two directories; those that stay apart are meant to.
            if _are_together(places) or places == before:
                return _contents(places)
        except _MissingError as error:
            said = error
        else:
            before = places
    raise said


def open_to_all(folder: Path) -> bool:
    """Tell whether anybody can replace the files in a folder: all may write to it, and it is not sticky.

    A Secret is mounted on a folder that all may write to, but a sticky one, and read-only in its container.
    """
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


def _resolved(path: Path) -> _Place:
    with _said_of(path):
        folder = os.path.realpath(path.parent, strict=True)
        found = os.path.realpath(Path(folder, path.name), strict=True)
    if os.path.commonpath((folder, found)) != folder:
        raise FileError(f"{path}: a link in it leads out of {folder}: name the folder that holds the file")
    return _Place(path, *os.path.split(found))


def _are_together(places: Sequence[_Place]) -> bool:
    led_to: dict[Path, str] = {}
    return all(led_to.setdefault(place.given.parent, place.directory) == place.directory for place in places)


def _contents(places: Sequence[_Place]) -> list[bytes]:
    with contextlib.ExitStack() as opened:
        folders: dict[str, int] = {}
        for place in places:
            if place.directory not in folders:
                with _said_of(place.given):
                    folders[place.directory] = os.open(place.directory, _FOLDER)
                opened.callback(os.close, folders[place.directory])
        return [_read(place, folders[place.directory]) for place in places]


def _read(place: _Place, folder: int) -> bytes:
    with _said_of(place.given):
        # Looked at before it is opened: to open a device can do something.
        _check(place.given, os.stat(place.name, dir_fd=folder, follow_symlinks=False))
        with open(os.open(place.name, _FILE, dir_fd=folder), "rb") as file:  # noqa: PTH123 -- a descriptor has no path
            _check(place.given, os.fstat(file.fileno()))
            content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise _too_large(place.given)
    return content


def _check(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise FileError(f"{path}: is a directory: name the file in it")
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{path}: no regular file (a pipe, socket or device)")
    if found.st_size > MOST_BYTES:
        raise _too_large(path)


def _too_large(path: Path) -> FileError:
    return FileError(f"{path}: larger than 1 MiB, so it is no certificate or key")


@contextlib.contextmanager
def _said_of(path: Path) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _MissingError(f"{path}: {_reason(error)}") from None
    except ValueError:
        raise FileError(f"{path}: no path of a file") from None
    except OSError as error:
        raise FileError(f"{path}: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    return (error.strerror or "cannot be read").lower()
