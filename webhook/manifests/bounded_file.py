"""Read untrusted files within limits: regular files only, and never more than the limit."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

# etcd takes 1.5 MiB per object; a dump of a whole cluster is many objects in one `kind: List`.
MAX_BYTES: Final = 64 * 2**20
# The deepest custom resource definitions nest about 60 levels; libyaml's composer overruns the stack at some 20,000.
MAX_DEPTH: Final = 128
# How many directories deep a tree is read; a path of PATH_MAX could have 2,000, each some frames of Python's stack.
MAX_DIRECTORIES: Final = 128
MAX_NODES: Final = 2_000_000
# Nodes that stand in the text once and in the object many times; 280 bytes of aliases make a million.
MAX_ALIASED_NODES: Final = 100_000


# Without the first, opening a pipe would wait for a writer; Windows has only the last of these.
_FLAGS: Final = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
_OF_THE_SHELL: Final = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
_PART: Final = 1 << 20  # bytes; memory for as many is asked for at once


def read_regular(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; links to one are followed.

    Raises:
        OSError: it cannot be read, is a pipe, a device or a directory, or is larger; `strerror` says which.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except ValueError:
        wrong = "is not a valid file name: it contains a character that no file name can have"
        raise OSError(errno.EINVAL, wrong, str(path)) from None
    try:
        # Asked of what is open, because a name can get another meaning between two questions.
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        parts, left = [], limit + 1
        # One byte more than the file has, so that the first call reads it; it may grow meanwhile.
        wanted = min(status.st_size + 1, _PART)
        while left > 0 and (part := os.read(descriptor, min(left, wanted))):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(descriptor)
    if left <= 0:
        raise OSError(errno.EFBIG, f"is larger than {_size(limit)}", str(path))
    return b"".join(parts)


def read_named(path: Path, limit: int) -> bytes:
    """Return the content of a file that the user names: a regular one, or a pipe of the shell such as `<(command)`.

    Raises:
        OSError: as `read_regular`.
    """
    if not str(path).startswith(_OF_THE_SHELL):
        return read_regular(path, limit)
    with path.open("rb") as opened:
        data = opened.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"is larger than {_size(limit)}", str(path))
    return data


def _size(limit: int) -> str:
    return f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit} bytes"
