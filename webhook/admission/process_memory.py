"""What the kernel and the allocator do with the memory of a process that holds private keys and large bodies."""

from __future__ import annotations

import ctypes
import resource
from typing import Final

# A limit of nothing holds for files only; at one byte the kernel starts no program that would take the dump either
# (fs/coredump.c, Linux 6.12).
_LIMIT: Final = 1
# Parameters of mallopt(3), from malloc.h of glibc 2.41.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
# Larger than the parts in which a body comes, some 320 KiB, which would be mapped one by one.
_LARGE_BLOCK: Final = 1024 * 1024


def forbid_core_dumps() -> None:
    """Let neither this process nor those that it starts leave a dump."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    limit = _LIMIT if hard == resource.RLIM_INFINITY else min(hard, _LIMIT)
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))


def return_large_blocks() -> None:
    """Return blocks from 1 MiB on to the kernel as soon as they are freed; children that are forked do so too.

    Left alone, glibc maps a block separately only if it is larger than the largest one freed so far, up to 32 MiB, and
    keeps twice as much of the heap for later (`M_MMAP_THRESHOLD`, mallopt(3)). After a body of 24 MiB that is 48 MiB for
    each worker, for good. An allocator without mallopt is left as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, _LARGE_BLOCK)
