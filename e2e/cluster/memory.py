"""How much memory a process had."""

from __future__ import annotations

import re
from pathlib import Path

_PEAK = re.compile(r"^VmHWM:\s*(\d+) kB$", re.MULTILINE)


def peak_megabytes(pid: int) -> int:
    """Return the most that was resident, in MB; 0 where the kernel is not Linux, or the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    found = _PEAK.search(status)
    return int(found[1]) * 1024 // 1_000_000 if found else 0
