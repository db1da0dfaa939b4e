"""Becomes another program that the kernel ends when the process that started this one does.

`python die_with_parent.py PARENT_PID PROGRAM ARGUMENT...`. So nothing is left behind by a test run that was killed and
had no chance to clean up. The kernel looks at the thread that started it: start it from one that stays (prctl(2)).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != int(parent):
            # It ended before we asked.
            sys.exit(1)
    try:
        os.execv(command[0], command)  # noqa: S606 -- the program to become; no shell is wanted
    except OSError as error:
        sys.exit(f"cannot be run: {error}")


if __name__ == "__main__":
    main()
