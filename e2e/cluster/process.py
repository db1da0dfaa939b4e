"""A program that runs as a process of ours: its log, its readiness, its end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LAST_LINES = 15
READY_SECONDS = 180.0
_PAUSE_SECONDS = 0.02
_GRACE_SECONDS = 10.0
_DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")


class ProcessError(Exception):
    """A program died, or did not become ready; the text holds the last lines of its log."""


class Process:
    """Started when made, from the main thread; in a session of its own, so that Ctrl-C reaches it through us only.

    Args:
        name: what it is called in errors.
        command: an absolute path, and arguments.
        log_file: where everything it prints goes.
        environment: of the process; ours when not given.
        output: where its standard output goes instead.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_file: Path,
        environment: Mapping[str, str] | None = None,
        output: Path | None = None,
    ) -> None:
        self.name = name
        self.log_file = log_file
        wrapped = [sys.executable, "-I", "-S", str(_DIE_WITH_PARENT), str(os.getpid()), *command]
        with log_file.open("ab") as log, (output or log_file).open("ab") as out:
            self._process = subprocess.Popen(  # noqa: S603 -- programs of ours
                wrapped, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=environment, start_new_session=True
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll()

    def log(self) -> str:
        """Return what it has logged so far."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def wait_until(self, ready: Callable[[], bool], what: str = "ready", seconds: float = READY_SECONDS) -> None:
        """Ask again and again until it is so.

        Raises:
            ProcessError: it died meanwhile, or the time is over.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            code = self._process.poll()
            if code is not None:
                raise ProcessError(f"{self.name} ended with exit code {code} before it was {what}{self._last_lines()}")
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.name} is not {what} after {seconds:.0f} s{self._last_lines()}")
            time.sleep(_PAUSE_SECONDS)

    def check(self) -> None:
        """Do nothing while it runs.

        Raises:
            ProcessError: it ended.
        """
        if self.exit_code is not None:
            raise ProcessError(f"{self.name} ended with exit code {self.exit_code}{self._last_lines()}")

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def stop(self) -> int:
        """End it: politely, then by force; returns its exit code, also when it had ended."""
        self._process.terminate()
        try:
            return self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _last_lines(self) -> str:
        lines = self.log().splitlines()[-LAST_LINES:]
        return f"; the end of {self.log_file}:\n" + "\n".join(f"  {line}" for line in lines)
