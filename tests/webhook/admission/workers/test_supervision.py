"""A supervisor in this process, with workers that only send heartbeats."""

from __future__ import annotations

import mmap
import os
import signal
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.admission import workers
from gpugate.webhook.admission.workers import Board, Supervisor, WorkerExit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Memory:
    """Counters that processes share, each below 256."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16)

    def add(self, place: int) -> int:
        self._memory[place] += 1
        return self._memory[place]

    def __getitem__(self, place: int) -> int:
        return self._memory[place]


@dataclass
class Server:
    """A supervised server; `ends` is called with the ticks since it was ready, and stops it if it is true."""

    work: Callable[[int, Board], None]
    ends: Callable[[Server], bool]
    count: int = 1
    stuck_seconds: float = 30
    signal: int = signal.SIGTERM
    events: list[str] = field(default_factory=list)
    exits: list[WorkerExit] = field(default_factory=list)
    ticks: int = 0

    def run(self) -> int:
        self.board = Board(self.count)
        self.listener = socket.create_server(("127.0.0.1", 0))
        supervisor = Supervisor(
            lambda number: self.work(number, self.board),
            self.board,
            [self.listener],
            0,
            self.ended,
            self.stuck_seconds,  # type: ignore[arg-type] # shorter than usual
        )
        return supervisor.run(
            self.count, lambda: self.events.append("ready"), self.tick, lambda: self.events.append("reload")
        )

    def ended(self, worker_exit: WorkerExit) -> None:
        self.exits.append(worker_exit)

    def tick(self) -> None:
        if "ready" in self.events:
            self.ticks += 1
            if self.ends(self):
                os.kill(os.getpid(), self.signal)


def serves(number: int, board: Board) -> None:
    """Serve until a signal ends the process."""
    board.beat(number, ())
    while True:
        signal.pause()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("_TICK_SECONDS", "_EARLY_EXIT_SECONDS"):
        monkeypatch.setattr(workers, name, 0.01)
    before = {number: signal.getsignal(number) for number in workers._SIGNALS}
    yield
    # The supervisor restores what it changes.
    assert {number: signal.getsignal(number) for number in workers._SIGNALS} == before
    assert signal.set_wakeup_fd(-1) == -1


def at_once(_: Server) -> bool:
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_signal_ends_all_workers(number: int, count: int) -> None:
    lives = Memory()

    def work(worker: int, board: Board) -> None:
        lives.add(worker)
        # Python turns a SIGINT into an exception.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        serves(worker, board)

    server = Server(work, at_once, count, signal=number)
    assert (server.run(), server.events, server.exits) == (0, ["ready"], [])
    assert ([lives[worker] for worker in range(4)], server.board.is_draining) == ([1] * count + [0] * (4 - count), True)
    # The kernel accepts connections as long as any process has the listener open.
    assert server.listener.fileno() == -1


def test_a_worker_that_ends_is_replaced() -> None:
    lives = Memory()

    def work(number: int, board: Board) -> None:
        if number == 1 and lives.add(1) < 3:
            os._exit(6 + lives[1])
        serves(number, board)

    server = Server(work, lambda server: server.board.is_serving, count=2)
    assert (server.run(), server.events) == (0, ["ready"])
    assert ([each.exit_code for each in server.exits], lives[1]) == ([7, 8], 3)
    assert len({each.pid for each in server.exits} - {0}) == 2


def test_a_worker_that_dies_early_is_replaced_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_EARLY_EXIT_SECONDS", 0.05)
    lives = Memory()

    def work(number: int, board: Board) -> None:
        if lives.add(0) == 1:
            os._exit(1)
        serves(number, board)

    started = time.monotonic()
    Server(work, at_once).run()
    assert (lives[0], time.monotonic() - started >= 0.05) == (2, True)


def test_a_worker_without_heartbeats_is_killed() -> None:
    lives = Memory()

    def work(number: int, board: Board) -> None:
        beats = lives.add(0) > 1
        board.beat(number, ())
        while True:
            time.sleep(0.001)
            if beats:
                board.beat(number, ())

    server = Server(work, lambda server: server.ticks > 20 and bool(server.exits), stuck_seconds=0.1)
    assert (server.run(), {each.exit_code for each in server.exits}) == (0, {-signal.SIGKILL})


def test_a_worker_that_gets_a_signal_while_it_starts_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    lives = Memory()
    start = Supervisor._run_worker

    def run_worker(supervisor: Supervisor, worker: int) -> None:
        if lives.add(0) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        start(supervisor, worker)

    monkeypatch.setattr(Supervisor, "_run_worker", run_worker)
    server = Server(serves, lambda server: len(server.exits) == 1)
    assert (server.run(), [each.exit_code for each in server.exits]) == (0, [-signal.SIGTERM])


def test_a_sighup_is_for_the_supervisor_and_then_for_each_worker() -> None:
    received = Memory()

    def work(number: int, board: Board) -> None:
        signal.signal(signal.SIGHUP, lambda *_: received.add(number))
        serves(number, board)

    def ends(server: Server) -> bool:
        if server.ticks == 1:
            os.kill(os.getpid(), signal.SIGHUP)
        return received[0] == received[1] == 1

    server = Server(work, ends, count=2)
    assert (server.run(), server.events, server.exits) == (0, ["ready", "reload"], [])


def test_a_second_signal_kills_workers_that_do_not_end() -> None:
    pids = Memory()

    def work(number: int, board: Board) -> None:
        signal.signal(signal.SIGTERM, lambda *_: (pids.add(0), os.kill(os.getppid(), signal.SIGTERM)))
        serves(number, board)

    server = Server(work, at_once)
    assert (server.run(), pids[0] >= 1) == (1, True)


def test_workers_that_do_not_end_are_killed_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_SUPERVISOR_LEAVE_SECONDS", 0.05)

    def work(number: int, board: Board) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        serves(number, board)

    assert Server(work, at_once).run() == 1


def test_workers_have_the_default_handlers() -> None:
    found = Memory()

    def work(number: int, board: Board) -> None:
        for each in workers._SIGNALS:
            if signal.getsignal(each) == signal.SIG_DFL:
                found.add(0)
        if signal.set_wakeup_fd(-1) == -1:
            found.add(1)
        serves(number, board)

    Server(work, at_once).run()
    assert (found[0], found[1]) == (3, 1)


class Child:
    """A process that a supervisor started."""

    def __init__(self, pid: int | None = 7, exitcode: int | None = None) -> None:
        self.pid, self.exitcode = pid, exitcode
        self.kills = 0

    def kill(self) -> None:
        self.kills += 1


def supervising(board: Board, *children: Child, stuck_seconds: int = 30) -> Supervisor:
    supervisor = Supervisor(lambda _: None, board, [], 0, lambda _: None, stuck_seconds)
    supervisor._running = {number: workers._RunningWorker(child) for number, child in enumerate(children)}  # type: ignore[arg-type] # in its place
    return supervisor


@pytest.mark.parametrize(
    ("beats", "kills"),
    [([1, 1, 1, 1, 1], 0), ([1, 0, 1, 0, 1], 0), ([1, 0, 0], 1), ([0, 0], 1), ([1, 0], 0)],
    ids=["beats", "late beats", "silent from then on", "never beat", "silent for a second"],
)
def test_a_worker_without_a_heartbeat_for_some_seconds_is_killed(
    monkeypatch: pytest.MonkeyPatch, beats: list[int], kills: int
) -> None:
    monkeypatch.setattr(workers, "_TICK_SECONDS", 1.0)
    board, child = Board(1), Child()
    supervisor = supervising(board, child, stuck_seconds=2)
    for beat in beats:
        if beat:
            board.beat(0, ())
        supervisor._end_stuck()
    assert child.kills == kills


@pytest.mark.parametrize(
    ("child", "signals"),
    [(Child(), [(7, signal.SIGHUP)]), (Child(exitcode=0), []), (Child(pid=None), [])],
    ids=["running", "ended", "not started"],
)
def test_only_a_running_worker_receives_a_signal(
    monkeypatch: pytest.MonkeyPatch, child: Child, signals: list[tuple[int, int]]
) -> None:
    """The process id of one that ended may be that of another process now."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    supervising(Board(1), child)._send(signal.SIGHUP)
    assert sent == signals
