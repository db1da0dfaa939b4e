"""Keeps memory off disks when a process dies: it holds private keys."""

from __future__ import annotations

import resource
from typing import Final

# A limit of nothing holds for files only; at one byte the kernel starts no program that would take the dump either
# (fs/coredump.c, Linux 6.12).
_LIMIT: Final = 1


def forbid_core_dumps() -> None:
    """Let neither this process nor those that it starts leave a dump."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    limit = _LIMIT if hard == resource.RLIM_INFINITY else min(hard, _LIMIT)
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
