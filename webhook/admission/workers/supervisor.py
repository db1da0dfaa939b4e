"""Starts the workers, starts them again when they die, and passes signals on; answers nothing itself."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
from multiprocessing import connection
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.context import ForkProcess

    from gpugate.webhook.admission.workers.board import Board

_TICK_SECONDS: Final = 1.0
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# A worker whose event loop has not come round for so many seconds is stuck in something that cannot be interrupted: the
# API server waits that long at most (`timeoutSeconds`, Kubernetes v1.36).
_STUCK_SECONDS: Final = 30
# A worker that dies younger than this, in seconds, will die again: the next one waits that long.
_YOUNG: Final = 1.0
# What the workers take to leave after they stopped accepting, and some.
_LEAVE_SECONDS: Final = 20.0


class Told(NamedTuple):
    """What the supervisor tells: that a worker ended, with its process id and exit code (below 0: the signal)."""

    pid: int
    exit_code: int


class _Hired:
    """A worker as the supervisor sees it."""

    def __init__(self, process: ForkProcess) -> None:
        self.process = process
        self.started = time.monotonic()
        self.beats = 0
        self.silent_ticks = 0


class Supervisor:
    """The parent of the workers.

    It has neither threads nor an event loop, so that it can fork at any time.
    """

    def __init__(
        self,
        work: Callable[[int], None],
        board: Board,
        listeners: Sequence[socket.socket],
        drain_seconds: float,
        ended: Callable[[Told], None],
        stuck_seconds: int = _STUCK_SECONDS,
    ) -> None:
        self._work = work
        self._board = board
        self._listeners = listeners
        self._drain_seconds = drain_seconds
        self._ended = ended
        self._stuck_seconds = stuck_seconds
        self._context = multiprocessing.get_context("fork")
        self._hired: dict[int, _Hired] = {}
        self._due: dict[int, float] = {}
        self._signals: list[int] = []

    def run(self, workers: int, ready: Callable[[], None], tick: Callable[[], None], reload: Callable[[], None]) -> int:
        """Keep so many workers until a SIGTERM or SIGINT; returns the exit code of the command.

        Args:
            workers: how many.
            ready: called once, when all of them serve.
            tick: called once a second.
            reload: called when a SIGHUP came, before the workers hear of it.
        """
        wake, woken = socket.socketpair()
        for end in (wake, woken):
            end.setblocking(False)  # noqa: FBT003 -- a socket's own signature
        before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        try:
            for number in range(workers):
                self._hire(number)
            return self._watch(woken, ready, tick, reload)
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            for hired in self._hired.values():
                hired.process.kill()
            wake.close()
            woken.close()

    def _watch(
        self, woken: socket.socket, ready: Callable[[], None], tick: Callable[[], None], reload: Callable[[], None]
    ) -> int:
        announced = False
        next_tick = time.monotonic()
        while True:
            for number in self._heard(woken, next_tick if announced else time.monotonic() + 0.02):
                if number != signal.SIGHUP:
                    return self._leave(woken, number)
                reload()
                self._send(signal.SIGHUP)
            self._replace_dead()
            if not announced and self._board.is_serving:
                announced = True
                ready()
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + _TICK_SECONDS
                self._end_stuck()
                tick()

    def _leave(self, woken: socket.socket, number: int) -> int:
        """Let the workers leave; a second signal, or too long a time, ends them."""
        self._board.drain()
        self._send(number)
        # Nobody is started again.
        self._due.clear()
        accepting = time.monotonic() + (self._drain_seconds if number == signal.SIGTERM else 0)
        end = accepting + _LEAVE_SECONDS
        while self._hired:
            now = time.monotonic()
            if self._listeners and now >= accepting:
                # As long as one process has it open, the kernel goes on accepting for nobody.
                for listener in self._listeners:
                    listener.close()
                self._listeners = ()
            again = [heard for heard in self._heard(woken, now + 0.1) if heard != signal.SIGHUP]
            if again or now >= end:
                return 1
            for worker in [w for w, hired in self._hired.items() if hired.process.exitcode is not None]:
                self._hired.pop(worker).process.join()
        return 0

    def _heard(self, woken: socket.socket, until: float) -> list[int]:
        """Wait for a signal, or for a worker to end, and return the signals that came."""
        if not self._signals:
            waited_for: list[socket.socket | int] = [woken]
            waited_for += [hired.process.sentinel for hired in self._hired.values()]
            connection.wait(waited_for, max(0, min([until, *self._due.values()]) - time.monotonic()))
        while True:
            try:
                if not woken.recv(64):
                    break
            except BlockingIOError:
                break
        heard, self._signals = self._signals, []
        return heard

    def _hire(self, worker: int) -> None:
        self._board.clear(worker)
        process = self._context.Process(target=self._become, args=(worker,), name=f"gpugate worker {worker + 1}")
        process.start()
        self._hired[worker] = _Hired(process)

    def _become(self, worker: int) -> None:
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        self._work(worker)

    def _replace_dead(self) -> None:
        for worker, hired in list(self._hired.items()):
            code = hired.process.exitcode
            if code is not None:
                del self._hired[worker]
                self._board.clear(worker)
                self._ended(Told(hired.process.pid or 0, code))
                lived = time.monotonic() - hired.started
                self._due[worker] = time.monotonic() + (_YOUNG if lived < _YOUNG else 0)
        for worker, due in list(self._due.items()):
            if time.monotonic() >= due:
                del self._due[worker]
                self._hire(worker)

    def _end_stuck(self) -> None:
        for worker, hired in self._hired.items():
            beats = self._board.beats(worker)
            hired.silent_ticks = hired.silent_ticks + 1 if beats == hired.beats else 0
            hired.beats = beats
            if hired.silent_ticks * _TICK_SECONDS >= self._stuck_seconds:
                hired.process.kill()

    def _send(self, number: int) -> None:
        for hired in self._hired.values():
            if hired.process.pid is not None and hired.process.exitcode is None:
                os.kill(hired.process.pid, number)

    def _note(self, number: int, _frame: object) -> None:
        self._signals.append(number)
