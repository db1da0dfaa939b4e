"""The life of one worker, with a front that records its calls."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.admission import workers
from gpugate.webhook.admission.workers import Board, Duties, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ADMISSION: Any = ("admission", "tls")
HEALTH: Any = "health"
ACCEPT = [("accept", "health", None), ("accept", "admission", "tls")]


class Front:
    def __init__(self, calls: list[tuple[Any, ...]]) -> None:
        self.loop = asyncio.get_running_loop()
        self._calls = calls

    async def keep_time(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self._calls.append(("keep_time ended",))
            raise

    def accept_from(self, listener: Any, tls: Any) -> None:
        self._calls.append(("accept", listener, tls))

    def drain(self) -> None:
        self._calls.append(("drain",))

    async def leave(self, seconds: float) -> None:
        self._calls.append(("leave", seconds))


class Process:
    """A worker in this process; `ticks` are called one after the other, in its ticks."""

    def __init__(self, *ticks: Callable[[], object], drain_seconds: float = 0.0) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.board = Board(1)
        self.missing: Callable[[], Sequence[str]] = tuple
        self._ticks = list(ticks)
        self._worker = Worker(0, self.board, drain_seconds)

    def run(self, health: Any = HEALTH) -> list[tuple[Any, ...]]:
        duties = Duties(
            lambda: self.missing(),  # noqa: PLW0108 -- it changes
            self._tick,
            lambda: self.calls.append(("reload",)),
            lambda: self.calls.append(("stop",)),
        )
        asyncio.run(self._worker._run(lambda: Front(self.calls), ADMISSION, health, duties))  # type: ignore[arg-type,return-value] # in its place
        return self.calls

    def _tick(self, front: Any) -> None:
        assert isinstance(front, Front)
        if self._ticks:
            self._ticks.pop(0)()


def sends(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


ENDS = [("leave", 15.0), ("stop",), ("keep_time ended",)]


@pytest.mark.parametrize(
    ("number", "calls"), [(signal.SIGTERM, [*ACCEPT, ("drain",), *ENDS]), (signal.SIGINT, [*ACCEPT, *ENDS])]
)
def test_a_signal_ends_a_worker_and_only_a_sigterm_drains_it(number: int, calls: list[Any]) -> None:
    process = Process(sends(number))
    assert process.run() == calls
    assert (process.board.beats(0), process.board.missing()) == (1, ())


def test_a_process_without_probes_listens_once() -> None:
    assert Process(sends(signal.SIGINT)).run(health=None) == [ACCEPT[1], *ENDS]


def test_a_worker_reloads_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_TICK_SECONDS", 0.01)
    process = Process(sends(signal.SIGHUP), sends(signal.SIGINT))
    assert process.run() == [*ACCEPT, ("reload",), *ENDS]
    assert process.board.beats(0) == 2


def test_a_worker_accepts_reviews_after_it_has_its_cluster_data() -> None:
    process, asked = Process(sends(signal.SIGINT)), list[int]()

    def missing() -> tuple[str, ...]:
        asked.append(len(process.calls))
        return ("nodepools not listed",) if len(asked) < 3 else ()

    process.missing = missing
    process.run()
    # The probes were answered meanwhile.
    assert asked[:3] == [1, 1, 1]


def test_a_worker_without_cluster_data_accepts_reviews_after_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_FACTS_SECONDS", 0.0)
    process = Process(sends(signal.SIGINT))
    process.missing = lambda: ("nodepools not listed",)
    assert process.run() == [*ACCEPT, *ENDS]
    assert process.board.missing() == ("worker 1: nodepools not listed",)


def test_a_worker_that_waits_for_cluster_data_ends_with_a_signal() -> None:
    process = Process()

    def missing() -> tuple[str, ...]:
        sends(signal.SIGINT)()
        return ("nodepools not listed",)

    process.missing = missing
    assert process.run()[-3:] == ENDS


def test_a_worker_ends_without_draining_if_its_supervisor_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(drain_seconds=1e6)
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert process.run() == [*ACCEPT, *ENDS]


def test_a_worker_that_drains_ends_if_its_supervisor_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(sends(signal.SIGTERM), drain_seconds=1e6)
    drain = Front.drain

    def drains(front: Front) -> None:
        drain(front)
        monkeypatch.setattr(os, "getppid", lambda: 1)

    monkeypatch.setattr(Front, "drain", drains)
    assert process.run() == [*ACCEPT, ("drain",), *ENDS]


def test_a_worker_drains_for_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    sleep = asyncio.sleep

    async def sleeps(seconds: float) -> None:
        waited.append(seconds)
        await sleep(min(seconds, 0.01))

    monkeypatch.setattr(asyncio, "sleep", sleeps)
    process = Process(sends(signal.SIGTERM), drain_seconds=0.05)
    process.run()
    # The others are those of ticks.
    drained = [seconds for seconds in waited if seconds != 1.0]
    assert 0.04 < drained[0] <= 0.05
    assert drained == sorted(drained, reverse=True)
