"""What /proc says of a process and its children, and of the machine (proc_pid_smaps_rollup(5), proc_stat(5), Linux 6)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes of one process: what it has mapped, and its share where pages are shared."""

    resident: float
    proportional: float


def tree(pid: int) -> list[int]:
    """Return a process and all that descend from it, itself first."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    return [pid, *(descendant for child in children for descendant in tree(child))]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process and its descendants have had, user and system, to the nanosecond.

    The clock of `/proc/PID/stat` ticks a hundred times a second, too seldom for a short run.
    """
    return sum(_nanoseconds(process) for process in tree(pid)) / 1e9


def machine_seconds() -> float:
    """Return the CPU time that anything on this machine has had, in steps of about 10 ms."""
    user, nice, system, _idle, _waiting, *interrupts_and_stolen = (
        Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    ticks = sum(map(int, (user, nice, system, *interrupts_and_stolen)))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> Memory:
    """Return what one process takes."""
    kilobytes = {
        key: int(value.split()[0])
        for key, _, value in (
            line.partition(":") for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        )
    }
    return Memory(kilobytes["Rss"] / 1024, kilobytes["Pss"] / 1024)


def _nanoseconds(pid: int) -> int:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)
