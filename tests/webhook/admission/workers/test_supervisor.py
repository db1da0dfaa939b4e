from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("stuck_worker.py")


def test_a_stuck_worker_is_killed() -> None:
    with subprocess.Popen([sys.executable, str(SCRIPT)], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 -- ours
        assert process.stdout is not None
        line = process.stdout.readline()
        process.terminate()
    assert "exit_code=-9" in line
