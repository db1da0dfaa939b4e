"""Supervise the worker processes: start, restart, signal and drain them."""

from __future__ import annotations

import asyncio
import mmap
import multiprocessing
import os
import signal
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.context import ForkProcess

    from gpugate.webhook.admission.front.server import Context, Front

# A socket and what returns the TLS context of its next connection; None without TLS.
Listening: TypeAlias = "tuple[socket.socket, Context | None]"
# The number of heartbeats, whether the worker accepts connections, and what it needs before it is ready.
_ROW: Final = struct.Struct("=Q?247s")
_STARTING: Final = "starting"


class Board:
    """Shared memory with a row for each worker, which only that worker writes; created before the fork.

    Every child of the supervisor counts as a worker here; those after the first `workers` are named in `others`.
    """

    def __init__(self, workers: int, others: Sequence[str] = ()) -> None:
        self._names = (*(f"worker {number + 1}" for number in range(workers)), *others)
        self._answering = workers
        self._workers = workers = len(self._names)
        self._memory = mmap.mmap(-1, 1 + workers * _ROW.size)
        for worker in range(workers):
            self.clear(worker)

    @property
    def rows(self) -> int:
        """The number of processes besides the supervisor."""
        return self._workers

    def clear(self, worker: int) -> None:
        """Reset the row of a worker that starts.

        A process that does not answer requests delays readiness only once: after a later exit, its results for the
        workers still exist.
        """
        _, serving, missing = self._read(worker)
        if worker >= self._answering and serving and not missing:
            self._write(worker, 0, serving=True, missing="")
        else:
            self._write(worker, 0, serving=False, missing=_STARTING)

    def beat(self, worker: int, missing: Sequence[str]) -> None:
        """Record a heartbeat of a worker that accepts connections, and what it needs before it is ready."""
        beats, _, _ = self._read(worker)
        self._write(worker, beats + 1, serving=True, missing="; ".join(missing))

    def beats(self, worker: int) -> int:
        """Return the number of heartbeats of a worker."""
        return self._read(worker)[0]

    @property
    def is_serving(self) -> bool:
        """Whether every worker accepts connections."""
        return all(self._read(worker)[1] for worker in range(self._workers))

    def drain(self) -> None:
        """Record that the server shuts down."""
        self._memory[0] = 1

    @property
    def is_draining(self) -> bool:
        """Whether the server shuts down."""
        return bool(self._memory[0])

    def missing(self) -> tuple[str, ...]:
        """Return what the workers need before all are ready, and whether the server shuts down."""
        rows = [(worker, self._read(worker)[2]) for worker in range(self._workers)]
        missing = tuple(f"{self._names[worker]}: {text}" for worker, text in rows if text)
        return ("shutting down", *missing) if self.is_draining else missing

    def _read(self, worker: int) -> tuple[int, bool, str]:
        beats, serving, text = _ROW.unpack_from(self._memory, 1 + worker * _ROW.size)
        return beats, serving, text.rstrip(b"\0").decode("utf-8", "replace")

    def _write(self, worker: int, beats: int, *, serving: bool, missing: str) -> None:
        text = missing.encode("utf-8")
        _ROW.pack_into(self._memory, 1 + worker * _ROW.size, beats, serving, text)


_TICK_SECONDS: Final = 1.0
# The seconds for which a worker without cluster data leaves requests to other workers. The limit is for an unreachable
# API server, when no worker has cluster data.
_FACTS_SECONDS: Final = 5.0
# Together with `drain_seconds` less than the default terminationGracePeriodSeconds of a Pod (30).
_LEAVE_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class Duties:
    """The callbacks of a worker besides serving.

    `missing` returns what it needs before it is ready; `tick` is called once a second with the front, `reload` after a
    SIGHUP, and `stop` at the end.
    """

    missing: Callable[[], Sequence[str]]
    tick: Callable[[Front], None]
    reload: Callable[[], None]
    stop: Callable[[], None]


class Worker:
    """Serves on listeners that all workers share."""

    def __init__(self, number: int, board: Board, drain_seconds: float) -> None:
        self._number = number
        self._board = board
        self._drain_seconds = drain_seconds
        self._parent = os.getppid()

    def run(
        self,
        front: Callable[[], Front],
        admission: Listening,
        health: socket.socket | None,
        duties: Duties,
    ) -> None:
        """Serve until a SIGTERM or SIGINT, or until the supervisor has exited."""
        uvloop.run(self._run(front, admission, health, duties))

    async def _run(
        self,
        make_front: Callable[[], Front],
        admission: Listening,
        health: socket.socket | None,
        duties: Duties,
    ) -> None:
        front = make_front()
        leave: asyncio.Future[int] = front.loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            front.loop.add_signal_handler(number, _set_signal, leave, number)
        front.loop.add_signal_handler(signal.SIGHUP, duties.reload)
        keeping_time = asyncio.create_task(front.keep_time())
        if health is not None:
            front.accept_from(health, None)
        await self._wait_for_facts(duties, leave)
        front.accept_from(*admission)
        ticking = asyncio.create_task(self._tick(front, duties, leave))
        received = await leave
        if received == signal.SIGTERM:
            # Kubernetes needs time to remove this Pod from the endpoints, so connections are accepted meanwhile.
            front.drain()
            await self._wait(self._drain_seconds)
        await front.leave(_LEAVE_SECONDS)
        for task in (ticking, keeping_time):
            task.cancel()
        duties.stop()

    async def _wait_for_facts(self, duties: Duties, leave: asyncio.Future[int]) -> None:
        end = asyncio.get_running_loop().time() + _FACTS_SECONDS
        while duties.missing() and not leave.done() and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110 -- threads fill the facts
            await asyncio.sleep(0.05)

    async def _tick(self, front: Front, duties: Duties, leave: asyncio.Future[int]) -> None:
        while True:
            if os.getppid() != self._parent:
                # Without a supervisor, the worker would be neither restarted nor ended.
                _set_signal(leave, signal.SIGINT)
            duties.tick(front)
            self._board.beat(self._number, duties.missing())
            await asyncio.sleep(_TICK_SECONDS)

    async def _wait(self, seconds: float) -> None:
        """Wait, but only while the supervisor runs."""
        end = asyncio.get_running_loop().time() + seconds
        while os.getppid() == self._parent and (remaining := end - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110 -- the exit of a parent causes no event
            await asyncio.sleep(min(remaining, _TICK_SECONDS))


def _set_signal(leave: asyncio.Future[int], number: int) -> None:
    # The supervisor decides what a second signal means.
    if not leave.done():
        leave.set_result(number)


_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# A worker without a heartbeat for so many seconds is stuck in a call that cannot be interrupted. It is the longest time
# that the API server waits (`timeoutSeconds`, Kubernetes v1.36).
_STUCK_SECONDS: Final = 30
# A worker that dies within this many seconds is likely to die again, so its replacement starts after the same time.
_EARLY_EXIT_SECONDS: Final = 1.0
# Longer than the workers wait for open connections after they stop accepting.
_SUPERVISOR_LEAVE_SECONDS: Final = 20.0


class WorkerExit(NamedTuple):
    """A worker that exited: its process id and exit code; a negative code is a signal."""

    pid: int
    exit_code: int


class _RunningWorker:
    """The supervisor's record of a running worker."""

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
        ended: Callable[[WorkerExit], None],
        stuck_seconds: int = _STUCK_SECONDS,
    ) -> None:
        self._work = work
        self._board = board
        self._listeners = listeners
        self._drain_seconds = drain_seconds
        self._ended = ended
        self._stuck_seconds = stuck_seconds
        self._context = multiprocessing.get_context("fork")
        self._running: dict[int, _RunningWorker] = {}
        self._restart_at: dict[int, float] = {}
        self._signals: list[int] = []

    def run(self, workers: int, ready: Callable[[], None], tick: Callable[[], None], reload: Callable[[], None]) -> int:
        """Run workers until a SIGTERM or SIGINT; return the exit code of the command.

        Args:
            workers: the number of workers.
            ready: called once, when all workers serve.
            tick: called once a second.
            reload: called after a SIGHUP, before the workers receive it.
        """
        wake, wake_reader = socket.socketpair()
        for end in (wake, wake_reader):
            end.setblocking(False)  # noqa: FBT003 -- the signature of socket
        previous_handlers = {number: signal.signal(number, self._record_signal) for number in _SIGNALS}
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        try:
            for number in range(workers):
                self._start_worker(number)
            return self._watch(wake_reader, ready, tick, reload)
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)
            for running in self._running.values():
                running.process.kill()
            wake.close()
            wake_reader.close()

    def _watch(
        self,
        wake_reader: socket.socket,
        ready: Callable[[], None],
        tick: Callable[[], None],
        reload: Callable[[], None],
    ) -> int:
        announced = False
        next_tick = time.monotonic()
        while True:
            for number in self._wait_for_signals(wake_reader, next_tick if announced else time.monotonic() + 0.02):
                if number != signal.SIGHUP:
                    return self._leave(wake_reader, number)
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

    def _leave(self, wake_reader: socket.socket, number: int) -> int:
        """Wait until the workers have exited; a second signal or the time limit kills them."""
        self._board.drain()
        self._send(number)
        # Workers are not restarted during the shutdown.
        self._restart_at.clear()
        accepting = time.monotonic() + (self._drain_seconds if number == signal.SIGTERM else 0)
        end = accepting + _SUPERVISOR_LEAVE_SECONDS
        while self._running:
            now = time.monotonic()
            if self._listeners and now >= accepting:
                # The kernel accepts connections as long as any process has the listener open.
                for listener in self._listeners:
                    listener.close()
                self._listeners = ()
            signals = [
                received for received in self._wait_for_signals(wake_reader, now + 0.1) if received != signal.SIGHUP
            ]
            if signals or now >= end:
                return 1
            for worker in [w for w, running in self._running.items() if running.process.exitcode is not None]:
                self._running.pop(worker).process.join()
        return 0

    def _wait_for_signals(self, wake_reader: socket.socket, until: float) -> list[int]:
        """Wait for a signal or for the exit of a worker; return the received signals."""
        if not self._signals:
            waited_for: list[socket.socket | int] = [wake_reader]
            waited_for += [running.process.sentinel for running in self._running.values()]
            connection.wait(waited_for, max(0, min([until, *self._restart_at.values()]) - time.monotonic()))
        with suppress(BlockingIOError):
            while wake_reader.recv(64):
                pass
        received, self._signals = self._signals, []
        return received

    def _start_worker(self, worker: int) -> None:
        self._board.clear(worker)
        process = self._context.Process(target=self._run_worker, args=(worker,), name=f"gpugate worker {worker + 1}")
        # Until it has its own handlers, the worker would record a signal in its copy of the supervisor and not end.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        self._running[worker] = _RunningWorker(process)

    def _run_worker(self, worker: int) -> None:
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        self._work(worker)

    def _replace_dead(self) -> None:
        for worker, running in list(self._running.items()):
            code = running.process.exitcode
            if code is not None:
                del self._running[worker]
                self._board.clear(worker)
                self._ended(WorkerExit(running.process.pid or 0, code))
                lived = time.monotonic() - running.started
                self._restart_at[worker] = time.monotonic() + (
                    _EARLY_EXIT_SECONDS if lived < _EARLY_EXIT_SECONDS else 0
                )
        for worker, restart_at in list(self._restart_at.items()):
            if time.monotonic() >= restart_at:
                del self._restart_at[worker]
                self._start_worker(worker)

    def _end_stuck(self) -> None:
        for worker, running in self._running.items():
            beats = self._board.beats(worker)
            running.silent_ticks = running.silent_ticks + 1 if beats == running.beats else 0
            running.beats = beats
            if running.silent_ticks * _TICK_SECONDS >= self._stuck_seconds:
                running.process.kill()

    def _send(self, number: int) -> None:
        for running in self._running.values():
            if running.process.pid is not None and running.process.exitcode is None:
                os.kill(running.process.pid, number)

    def _record_signal(self, number: int, _frame: object) -> None:
        self._signals.append(number)
