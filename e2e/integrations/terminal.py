"""A shell on a terminal, as a person uses it: keys go in, and what it would run comes out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_PATIENCE = 90  # seconds


class Terminal:
    """A shell that runs on a pseudo-terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.screen = ""

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._descriptor, keys.encode())

    def until(self, text: str) -> None:
        """Read until the screen shows a text once more; fail when it never does."""
        start, deadline = len(self.screen), time.monotonic() + _PATIENCE
        while text not in self.screen[start:]:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._descriptor], [], [], left)[0]:
                raise AssertionError(f"{text!r} never came; the screen shows:\n{self.screen}")
            self.screen += os.read(self._descriptor, 65536).decode(errors="replace")


@contextlib.contextmanager
def terminal(command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> Iterator[Terminal]:
    """Run a shell on a terminal that is wide enough for every line."""
    child, descriptor = pty.fork()
    if not child:
        os.chdir(directory)
        os.execvpe(command[0], list(command), dict(environment))  # noqa: S606 -- the shell that the test names
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 500, 0, 0))
    try:
        yield Terminal(descriptor)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(descriptor)
