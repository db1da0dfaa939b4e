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
MAX_BYTES: Final = 1024 * 1024
_ATTEMPTS: Final = 20
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Opening a pipe or a terminal by mistake must not block the process.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class FileError(Exception):
    """A file is unreadable or of the wrong type; the text begins with its path."""


class _MissingError(FileError):
    """A file does not exist, or was removed while it was read."""


@dataclass(frozen=True, slots=True)
class _ResolvedPath:
    """A resolved path: a directory without symbolic links, and a name in it."""

    path: Path
    directory: str
    name: str


def read_together(paths: Sequence[Path]) -> list[bytes]:
    """Return the content of each file; files of one folder are read from one version of the folder.

    Raises:
        FileError: a file is missing, unreadable, not a regular file or larger than 1 MiB, or a symbolic link points
            outside the file's folder.
    """
    previous: list[_ResolvedPath] = []
    failure = _MissingError(f"{paths[0]}: replaced faster than gpugate can read it")
    for _ in range(_ATTEMPTS):
        try:
            resolved = [_resolve(path) for path in paths]
            # A link that changed between two paths resolves to two directories. If they still differ in the next
            # attempt, the folder contains links to different directories.
            if _share_directories(resolved) or resolved == previous:
                return _read_all(resolved)
        except _MissingError as error:
            failure = error
        else:
            previous = resolved
    raise failure


def is_world_writable(folder: Path) -> bool:
    """Whether every user can replace files in a folder: it is world-writable and not sticky.

    The folder of a mounted Secret is world-writable, but sticky, and read-only in the container.
    """
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


def _resolve(path: Path) -> _ResolvedPath:
    with _file_errors(path):
        folder = os.path.realpath(path.parent, strict=True)
        target = os.path.realpath(Path(folder, path.name), strict=True)
    if os.path.commonpath((folder, target)) != folder:
        raise FileError(f"{path}: a symbolic link points outside {folder}: use the path of the folder with the file")
    return _ResolvedPath(path, *os.path.split(target))


def _share_directories(resolved: Sequence[_ResolvedPath]) -> bool:
    directories: dict[Path, str] = {}
    return all(
        directories.setdefault(resolved_path.path.parent, resolved_path.directory) == resolved_path.directory
        for resolved_path in resolved
    )


def _read_all(resolved: Sequence[_ResolvedPath]) -> list[bytes]:
    with contextlib.ExitStack() as opened:
        folders: dict[str, int] = {}
        for resolved_path in resolved:
            if resolved_path.directory not in folders:
                with _file_errors(resolved_path.path):
                    folders[resolved_path.directory] = os.open(resolved_path.directory, _FOLDER)
                opened.callback(os.close, folders[resolved_path.directory])
        return [_read(resolved_path, folders[resolved_path.directory]) for resolved_path in resolved]


def _read(resolved_path: _ResolvedPath, folder: int) -> bytes:
    with _file_errors(resolved_path.path):
        # The type is checked before the file is opened, because opening a device can have an effect.
        _check_file(resolved_path.path, os.stat(resolved_path.name, dir_fd=folder, follow_symlinks=False))
        with open(os.open(resolved_path.name, _FILE, dir_fd=folder), "rb") as file:  # noqa: PTH123 -- a descriptor has no path
            _check_file(resolved_path.path, os.fstat(file.fileno()))
            content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise _too_large(resolved_path.path)
    return content


def _check_file(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{path}: is a directory: use the path of the file in it")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{path}: not a regular file (a pipe, socket or device)")
    if status.st_size > MAX_BYTES:
        raise _too_large(path)


def _too_large(path: Path) -> FileError:
    return FileError(f"{path}: larger than 1 MiB, the limit for a certificate or key")


@contextlib.contextmanager
def _file_errors(path: Path) -> Iterator[None]:
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
