"""Process states from /proc, and waiting for a condition."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_SECONDS = 60
_PAUSE_SECONDS = 0.01
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")


def wait_until(
    true: Callable[[], object], what: str, patience: float = PATIENCE_SECONDS, pause: float = _PAUSE_SECONDS
) -> float:
    """Wait for a condition; return the seconds that it took."""
    started = time.monotonic()
    while not true():
        assert time.monotonic() - started < patience, f"waited in vain until {what}"
        time.sleep(pause)
    return time.monotonic() - started


def children(pid: int) -> list[int]:
    """Return the running children of a process."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [child for child in map(int, listed) if alive(child)]


def alive(pid: int) -> bool:
    """Return whether any thread of a process runs; its connections are open until the last thread has ended."""
    return any(_fields(thread)[0] not in {"Z", "X"} for thread in _threads(pid))


def megabytes(pid: int) -> float:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 2**20


def descriptors(pid: int) -> int:
    """Return the number of open files and sockets of a process."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def cpu_seconds(pid: int) -> float:
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return (int(fields[11]) + int(fields[12])) / _TICK


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").glob("*/stat"))
    except FileNotFoundError:
        # The process exited meanwhile.
        return []


def _fields(stat: Path) -> list[str]:
    """Return the fields after the process name, the state first (proc_pid_stat(5)); ["X"], dead, if there is no process."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return ["X"]
