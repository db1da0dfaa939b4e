"""Gives content the path of a file without writing it to a disk."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def as_file(content: bytes) -> Iterator[str]:
    """Give content a path while it is needed, because the ssl module reads from files only.

    It is in memory where the platform has files there (Linux), else in a folder that nobody else can look into.
    """
    try:
        descriptor = os.memfd_create("gpugate-tls", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        descriptor = -1
    if descriptor >= 0:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            path = f"/proc/self/fd/{descriptor}"
            if os.access(path, os.R_OK):
                yield path
                return
    # A folder that is ours alone, and gone at once.
    with tempfile.TemporaryDirectory(prefix="gpugate-") as folder:
        on_disk = Path(folder, "tls.pem")
        on_disk.touch(mode=0o600)
        on_disk.write_bytes(content)
        yield str(on_disk)
