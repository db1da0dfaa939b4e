"""Read small files that belong together, such as a certificate and its key, while they may be replaced.

The kubelet replaces a mounted Secret by pointing one symbolic link, `..data`, at a new directory, and removes the old
one (`k8s.io/kubernetes` pkg/volume/util/atomic_writer.go, v1.36). Therefore links are resolved first. The files of one
folder are then read through an open descriptor of the resolved directory, so all of them are old or all are new.
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

# The maximum size of a Secret (`k8s.io/api` core/v1 MaxSecretSize).
MOST_BYTES: Final = 1024 * 1024
_ATTEMPTS: Final = 20
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Opening a pipe or a terminal by mistake must not block the process.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class FileError(Exception):
    """A file is unreadable or of the wrong type; the text begins with its path."""


class _MissingError(FileError):
    """A file does not exist, or was removed while it was read."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A resolved path: a directory without symbolic links, and a name in it."""

    given: Path
    directory: str
    name: str


def read_together(paths: Sequence[Path]) -> list[bytes]:
    """Return the content of each file; files of one folder are read from one version of the folder.

    Raises:
        FileError: a file is missing, unreadable, not a regular file or larger than 1 MiB, or a symbolic link points
            outside the file's folder.
    """
    before: list[_Place] = []
    said = _MissingError(f"{paths[0]}: replaced faster than gpugate can read it")
    for _ in range(_ATTEMPTS):
        try:
            places = [_resolved(path) for path in paths]
            # A link that changed between two paths resolves to two directories. If they still differ in the next
            # attempt, the folder contains links to different directories.
            if _are_together(places) or places == before:
                return _contents(places)
        except _MissingError as error:
            said = error
        else:
            before = places
    raise said


def open_to_all(folder: Path) -> bool:
    """Whether every user can replace files in a folder: it is world-writable and not sticky.

    The folder of a mounted Secret is world-writable, but sticky, and read-only in the container.
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
        raise FileError(f"{path}: a symbolic link points outside {folder}: use the path of the folder with the file")
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
        # The type is checked before the file is opened, because opening a device can have an effect.
        _check(place.given, os.stat(place.name, dir_fd=folder, follow_symlinks=False))
        with open(os.open(place.name, _FILE, dir_fd=folder), "rb") as file:  # noqa: PTH123 -- a descriptor has no path
            _check(place.given, os.fstat(file.fileno()))
            content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise _too_large(place.given)
    return content


def _check(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise FileError(f"{path}: is a directory: use the path of the file in it")
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{path}: not a regular file (a pipe, socket or device)")
    if found.st_size > MOST_BYTES:
        raise _too_large(path)


def _too_large(path: Path) -> FileError:
    return FileError(f"{path}: larger than 1 MiB, the limit for a certificate or key")


@contextlib.contextmanager
def _said_of(path: Path) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _MissingError(f"{path}: {_reason(error)}") from None
    except ValueError:
        raise FileError(f"{path}: invalid path") from None
    except OSError as error:
        raise FileError(f"{path}: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    return (error.strerror or "cannot be read").lower()
