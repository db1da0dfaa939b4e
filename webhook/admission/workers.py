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
from dataclasses import dataclass
from multiprocessing import connection
from typing import TYPE_CHECKING, Final, NamedTuple

import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.context import ForkProcess

    from gpugate.webhook.admission.front.server import Context, Front

# How often the event loop came round, whether connections are accepted, and what is missing for that to be of use.
_ROW: Final = struct.Struct("=Q?247s")
_STARTING: Final = "starting"


class Board:
    """One row for each worker, which only that worker writes; made before the workers are forked.

    Every process beside the supervisor is a worker here; those after the first `workers` have a name of their own.
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
        """How many processes there are beside the supervisor."""
        return self._workers

    def clear(self, worker: int) -> None:
        """Say that a worker is to start.

        One that answers nobody is waited for once: where it dies later, what it did for the others is still there.
        """
        _, serving, missing = self._read(worker)
        if worker >= self._answering and serving and not missing:
            self._write(worker, 0, serving=True, missing="")
        else:
            self._write(worker, 0, serving=False, missing=_STARTING)

    def beat(self, worker: int, missing: Sequence[str]) -> None:
        """Say that a worker accepts connections and is alive, and what it still misses."""
        beats, _, _ = self._read(worker)
        self._write(worker, beats + 1, serving=True, missing="; ".join(missing))

    def beats(self, worker: int) -> int:
        """Return how often a worker has said that it is alive."""
        return self._read(worker)[0]

    @property
    def is_serving(self) -> bool:
        """Whether every worker accepts connections."""
        return all(self._read(worker)[1] for worker in range(self._workers))

    def drain(self) -> None:
        """Say that all of this is about to end."""
        self._memory[0] = 1

    @property
    def is_draining(self) -> bool:
        """Whether all of this is about to end."""
        return bool(self._memory[0])

    def missing(self) -> tuple[str, ...]:
        """Say what is missing for every worker to be ready."""
        said = [(worker, self._read(worker)[2]) for worker in range(self._workers)]
        missing = tuple(f"{self._names[worker]}: {text}" for worker, text in said if text)
        return ("shutting down", *missing) if self.is_draining else missing

    def _read(self, worker: int) -> tuple[int, bool, str]:
        beats, serving, text = _ROW.unpack_from(self._memory, 1 + worker * _ROW.size)
        return beats, serving, text.rstrip(b"\0").decode("utf-8", "replace")

    def _write(self, worker: int, beats: int, *, serving: bool, missing: str) -> None:
        text = missing.encode("utf-8")
        _ROW.pack_into(self._memory, 1 + worker * _ROW.size, beats, serving, text)


_TICK_SECONDS: Final = 1.0
# For how long a worker without facts lets the others answer; when the cluster cannot be asked at all, that is nobody.
_FACTS_SECONDS: Final = 5.0
# Below what Kubernetes gives a Pod to end, together with the time of accepting.
_LEAVE_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class Duties:
    """What a worker does besides serving.

    `missing` says what it still misses to be of use; `tick` is called once a second with the front, `reload` when a
    SIGHUP came; `stop` at the end.
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
        admission: tuple[socket.socket, Context],
        health: socket.socket,
        duties: Duties,
    ) -> None:
        """Serve until a SIGTERM or SIGINT, or until the supervisor is gone."""
        uvloop.run(self._run(front, admission, health, duties))

    async def _run(
        self,
        make_front: Callable[[], Front],
        admission: tuple[socket.socket, Context],
        health: socket.socket,
        duties: Duties,
    ) -> None:
        front = make_front()
        leave: asyncio.Future[int] = front.loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            front.loop.add_signal_handler(number, _settle, leave, number)
        front.loop.add_signal_handler(signal.SIGHUP, duties.reload)
        keeping_time = asyncio.create_task(front.keep_time())
        front.accept_from(health, None)
        await self._wait_for_facts(duties, leave)
        front.accept_from(*admission)
        ticking = asyncio.create_task(self._tick(front, duties, leave))
        asked = await leave
        if asked == signal.SIGTERM:
            # Others have not heard yet that this one is about to leave.
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
                # Nobody would start it again, nor end it.
                _settle(leave, signal.SIGINT)
            duties.tick(front)
            self._board.beat(self._number, duties.missing())
            await asyncio.sleep(_TICK_SECONDS)

    async def _wait(self, seconds: float) -> None:
        """Wait, but not longer than there is a supervisor."""
        end = asyncio.get_running_loop().time() + seconds
        while os.getppid() == self._parent and (left := end - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110 -- a process that ends tells nobody
            await asyncio.sleep(min(left, _TICK_SECONDS))


def _settle(leave: asyncio.Future[int], number: int) -> None:
    # The supervisor decides what a second signal means.
    if not leave.done():
        leave.set_result(number)


_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# A worker whose event loop has not come round for so many seconds is stuck in something that cannot be interrupted: the
# API server waits that long at most (`timeoutSeconds`, Kubernetes v1.36).
_STUCK_SECONDS: Final = 30
# A worker that dies younger than this, in seconds, will die again: the next one waits that long.
_YOUNG: Final = 1.0
# What the workers take to leave after they stopped accepting, and some.
_SUPERVISOR_LEAVE_SECONDS: Final = 20.0


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
        end = accepting + _SUPERVISOR_LEAVE_SECONDS
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
