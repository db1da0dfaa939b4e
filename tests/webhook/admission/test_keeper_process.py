"""The steps of the process that manages certificates, with a keeper, an election and reports that record their calls."""

from __future__ import annotations

import datetime as dt
import os
import signal
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.certs.keeper import State
from gpugate.webhook.admission import keeper
from gpugate.webhook.admission.options import Keeping, ServeOptions
from gpugate.webhook.cluster.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
LEAVES: list[Any] = [SimpleNamespace(pair=f"pair {number}") for number in range(3)]
SERVED = State(LEAVES[0], waiting="")


class Process(keeper._KeeperProcess):
    """The process without a cluster; `calls` are those of its parts, in their order."""

    def __init__(self, *states: State, missing: str = "not read yet") -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.states = list(states)
        self.leads = True
        parts: dict[str, Any] = {
            "_keeper": SimpleNamespace(renew=lambda: self.next_state("renew"), step=lambda: self.next_state("step")),
            "_shared": SimpleNamespace(
                leafs=SimpleNamespace(put=self.recorded("put")), log=SimpleNamespace(close=self.recorded("close"))
            ),
            "_election": SimpleNamespace(is_leader=True, trouble=""),
            "_report": SimpleNamespace(
                update=self.recorded("update"), broke=self.recorded("broke"), trouble=self.recorded("trouble")
            ),
            "_drift": SimpleNamespace(update=self.recorded("drift")),
            "_connection": SimpleNamespace(clock_skew=3 * SECOND),
            "_watches": [SimpleNamespace(stop=self.recorded("stop"))],
            "_stopped": threading.Event(),
            "_wake": threading.Event(),
            "_now": lambda: NOW,
            "_leaf": None,
            "_missing": missing,
        }
        vars(self).update(parts)

    def recorded(self, name: str) -> Any:
        return lambda *values, **options: self.calls.append((name, *values, *options.values()))

    def next_state(self, name: str) -> State:
        self.calls.append((name,))
        return self.states.pop(0)


def test_a_step_renews_first_and_reports_the_last_state() -> None:
    authorities: Any = object()
    last = replace(SERVED, leaf=LEAVES[1], authorities=authorities)
    process = Process(SERVED, last)
    process._step()
    assert process.calls == [
        ("renew",),
        ("put", "pair 0"),
        ("step",),
        ("put", "pair 1"),
        ("update", last, True, 3 * SECOND),
        ("drift", authorities),
    ]


def test_a_certificate_is_published_once() -> None:
    process = Process(*[SERVED] * 4)
    process._step()
    process._step()
    assert [call for call in process.calls if call[0] == "put"] == [("put", "pair 0")]
    process = Process(State(), State())
    process._step()
    assert "put" not in {call[0] for call in process.calls}


@pytest.mark.parametrize(
    ("troubles", "due", "least", "most"),
    [
        ((), None, 55, 65),
        ((), 3600, 55, 65),
        ((), 10, 10, 10),
        ((), 0.2, 0.2, 0.2),
        ((), -7, 0.2, 0.2),
        (("m",), None, 5, 5),
        (("m",), 1, 5, 5),
        (("m",), 3600, 5, 5),
    ],
)
def test_the_pause_until_the_next_step(troubles: tuple[str, ...], due: float | None, least: float, most: float) -> None:
    state = replace(SERVED, troubles=troubles, due=None if due is None else NOW + due * SECOND)
    assert least <= Process(state, state)._step() <= most


def test_the_problem_of_the_election_is_one_of_the_step() -> None:
    process = Process(*[replace(SERVED, troubles=("m",))] * 2)
    process._election = SimpleNamespace(is_leader=False, trouble="no Lease")  # type: ignore[assignment] # only what is read
    assert process._step() == 5
    ((_, state, leads, _),) = (call for call in process.calls if call[0] == "update")
    assert (state.troubles, leads) == (("m", "no Lease"), False)


def test_readiness_is_never_revoked() -> None:
    shown = []
    process = Process(*[replace(SERVED, waiting=waiting) for waiting in ("a", "a", "", "", "b", "b")])
    for _ in range(3):
        process._step()
        shown.append(process._missing)
    assert shown == ["a", "", ""]


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ClusterError("no cluster"), "no cluster"), (KeyError("canary"), "internal error: KeyError")],
    ids=["cluster", "bug"],
)
def test_an_error_of_a_thread_is_reported_and_it_continues(
    monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    monkeypatch.setattr(keeper, "_TRY_AGAIN_SECONDS", 0)
    process = Process()
    left = [error, error]

    def run(stopped: threading.Event) -> None:
        if left:
            raise left.pop()
        stopped.set()

    process._run_until_stopped(run)
    assert [(name, text.partition(" at ")[0].partition(" (")[0], leads) for name, text, leads in process.calls] == [
        ("broke", reason, True)
    ] * 2


@pytest.mark.parametrize("stopped", [False, True])
def test_the_end_of_a_watch_is_reported_unless_the_process_stops(stopped: bool) -> None:  # noqa: FBT001 -- a table's column
    process = Process()
    if stopped:
        process._stopped.set()
    process._report_lost_watch("m")
    assert (process.calls, process._wake.is_set()) == (([], False) if stopped else ([("trouble", "m")], True))


def test_the_process_waits_until_it_is_woken() -> None:
    process = Process(*[SERVED] * 6)
    pauses = []

    def waits(seconds: float, wake: threading.Event, over: Any) -> None:
        pauses.append((seconds > 5, wake is process._wake, wake.is_set(), over()))
        process._election.is_leader = False  # type: ignore[misc] # of the fake
        assert over()
        process._election.is_leader = True  # type: ignore[misc] # as above
        wake.set()
        if len(pauses) == 3:
            process._stopped.set()
            assert over()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeper, "wait", waits)
        process._keep(process._stopped)
    assert pauses == [(True, True, False, False)] * 3


def test_a_process_that_leaves_ends_its_threads() -> None:
    process = Process()
    threads = [threading.Thread(target=event.wait) for event in (process._stopped, process._wake)]
    for thread in threads:
        thread.start()
    process._leave(threads)
    assert (process.calls, [thread.is_alive() for thread in threads]) == ([("stop",), ("close",)], [False, False])


class Stopped(threading.Event):
    """An event that is set in the main thread's second wait; `waits` are the seconds of these."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        if threading.current_thread() is not threading.main_thread():
            return super().wait(timeout)
        self.waits.append(timeout)
        return len(self.waits) == 2


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_the_process_beats_until_it_is_stopped_and_more_often_until_there_is_a_certificate() -> None:
    process, stopped = Process(), Stopped()
    beats: list[tuple[int, list[str]]] = []

    def beat(number: int, missing: list[str]) -> None:
        beats.append((number, missing))
        process._missing = ""

    def runs(until: threading.Event) -> None:
        until.wait()

    process._number, process._parent, process._stopped = 4, os.getppid(), stopped
    process._shared.board = SimpleNamespace(beat=beat)  # type: ignore[assignment] # in its place
    process._keep = runs  # type: ignore[method-assign] # as above
    process._election = SimpleNamespace(run=runs)  # type: ignore[assignment] # as above
    process._watches = [SimpleNamespace(run=runs, stop=process.recorded("stop"))]  # type: ignore[list-item] # as above
    process.run()
    assert beats == [(4, ["not read yet"]), (4, [])]
    assert stopped.waits == [0.05, 1.0]
    assert process.calls == [("stop",), ("close",)]
    assert stopped.is_set()

    # The handlers of its signals.
    process._wake.clear()
    stopped.clear()
    signal.raise_signal(signal.SIGHUP)
    assert (process._wake.is_set(), stopped.is_set()) == (True, False)
    signal.raise_signal(signal.SIGTERM)
    assert stopped.is_set()


@pytest.mark.usefixtures("handlers")
def test_the_process_leaves_when_its_parent_has_ended() -> None:
    process, stopped = Process(), Stopped()
    process._number, process._parent, process._stopped = 4, os.getppid() + 1, stopped
    process._keep = threading.Event.wait  # type: ignore[method-assign] # in its place
    process._election = SimpleNamespace(run=threading.Event.wait)  # type: ignore[assignment] # as above
    process._watches = []
    process.run()
    assert (stopped.waits, process.calls, stopped.is_set()) == ([], [("close",)], True)


def test_without_a_cluster_there_is_no_keeper() -> None:
    shared: Any = SimpleNamespace(options=ServeOptions("127.0.0.1", 0))
    with pytest.raises(ClusterError, match="need a cluster"):
        keeper.run_keeper(0, shared, Keeping("certificates", "gpugate"))
