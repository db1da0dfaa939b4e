"""Lines on their way to a file descriptor that may not take them: whoever logs never waits."""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from gpugate.webhook.admission.log_line import LONGEST_LINE

if TYPE_CHECKING:
    from collections.abc import Callable

# Some 10,000 lines of the usual length.
MOST_BYTES: Final = 4 * 1024 * 1024
_GATHER_SECONDS: Final = 0.02
# How often a descriptor that does not block is asked again whether it takes more.
_RETRY_SECONDS: Final = 0.1


class LineQueue:
    """Writes lines to a file descriptor from a thread of its own, and drops them when too many wait.

    Before `start` and after `close` there is no thread: a line is then written at once if the descriptor takes it, and
    dropped if not. A process that forks does so before `start`, because a thread is not in the child.
    """

    def __init__(self, descriptor: int, on_drop: Callable[[int], None], most_bytes: int = MOST_BYTES) -> None:
        """Make a queue.

        Args:
            descriptor: what is written to; it stays open.
            on_drop: called with a number of lines that were lost; from any thread.
            most_bytes: how much may wait.
        """
        self._descriptor = descriptor
        self._on_drop = on_drop
        self._most_bytes = most_bytes
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._in_flight = 0
        # Reentrant: a signal handler may log while the thread it interrupts does.
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None
        self._closing = False

    def start(self) -> None:
        """Start the thread."""
        # A daemon, because a write to a pipe that nobody reads would hold the process back for ever.
        self._writer = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._closing = False
        self._writer.start()

    def put(self, line: bytes) -> None:
        """Send a line of at most `LONGEST_LINE` bytes; never waits."""
        if self._writer is None:
            self._write_at_once(line)
            return
        with self._changed:
            fits = self._bytes + len(line) <= self._most_bytes
            if fits:
                if not self._lines:
                    self._changed.notify()
                self._lines.append(line)
                self._bytes += len(line)
        if not fits:
            self._on_drop(1)

    def close(self, seconds: float) -> None:
        """Write what waits, for at most so many seconds; what is left then is lost."""
        if self._writer is None:
            return
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._writer.join(seconds)
        self._writer = None
        with self._changed:
            # What a write that never came back holds is lost too.
            lost = len(self._lines) + self._in_flight
            self._lines.clear()
            self._bytes = 0
        if lost:
            self._on_drop(lost)

    def _write_all(self) -> None:
        while True:
            with self._changed:
                if not self._lines:
                    self._wait_for_lines()
                chunk, self._in_flight = self._taken()
            if not chunk:
                return
            if not self._written(chunk):
                self._on_drop(self._in_flight)
            self._in_flight = 0

    def _wait_for_lines(self) -> None:
        while not self._lines and not self._closing:
            self._changed.wait()
        if not self._closing:
            # To be woken for every line would cost whoever logs most of the time that a line takes.
            self._changed.wait(_GATHER_SECONDS)

    def _taken(self) -> tuple[bytes, int]:
        """Take as many lines as one write may hold."""
        lines: list[bytes] = []
        size = 0
        while self._lines and (not lines or size + len(self._lines[0]) <= LONGEST_LINE):
            lines.append(self._lines.popleft())
            size += len(lines[-1])
        self._bytes -= size
        return b"".join(lines), len(lines)

    def _written(self, chunk: bytes) -> bool:
        while chunk:
            try:
                chunk = chunk[os.write(self._descriptor, chunk) :]
            except BlockingIOError:
                # Whoever made the descriptor, or shares it, set it not to block.
                self._takes_more(_RETRY_SECONDS)
            except OSError:
                return False
        return True

    def _write_at_once(self, line: bytes) -> None:
        # A pipe that takes anything takes PIPE_BUF bytes.
        if self._takes_more(0):
            with suppress(OSError):
                os.write(self._descriptor, line)
                return
        self._on_drop(1)

    def _takes_more(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return any(event & select.POLLOUT for _, event in poll.poll(seconds * 1000))
