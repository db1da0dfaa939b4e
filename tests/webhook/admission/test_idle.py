"""When the work of an idle worker is done, on a loop whose time the tests set."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from manual_loop import Loop

from gpugate.webhook.admission import idle
from gpugate.webhook.admission.idle import IdleQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

MIB = 1024 * 1024
PAUSE = 0.002


class Worker:
    """A worker whose work takes so many seconds; `done` are the items with the time at which their work began."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, took: float = 0.0) -> None:
        self.loop, self.load = Loop(), SimpleNamespace(waiting=0)
        self.took = took
        self.done: list[tuple[Any, float]] = []
        monkeypatch.setattr(idle, "perf_counter", self.loop.time)
        self.queue: IdleQueue[Any] = IdleQueue(self._work)
        self.queue.attach(self.loop, self.load)  # type: ignore[arg-type] # what is used of them

    def _work(self, item: Any) -> None:
        self.done.append((item, round(self.loop.now, 6)))
        self.loop.now += self.took

    def put(self, items: Iterable[Any], size: int = 1) -> None:
        for item in items:
            self.queue.put(item, size)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    return Worker(monkeypatch)


def test_a_queue_works_in_a_loop_only() -> None:
    queue: IdleQueue[int] = IdleQueue(lambda _: None)
    queue.note_review()
    assert not queue.is_attached
    queue.attach(Loop(), SimpleNamespace(waiting=0))  # type: ignore[arg-type] # as above
    assert queue.is_attached


def test_work_is_done_in_order_after_a_pause(worker: Worker) -> None:
    worker.put("abc")
    assert worker.done == []
    worker.loop.run(60)
    assert worker.done == [(item, PAUSE) for item in "abc"]

    worker.put("d")
    worker.loop.run(60)
    assert [item for item, _ in worker.done] == list("abcd")
    assert worker.loop.calls == []


def test_a_queue_looks_for_work_once_in_a_pause(worker: Worker) -> None:
    worker.put("abc")
    assert len(worker.loop.calls) == 1


def test_a_queue_is_bounded_in_items(worker: Worker) -> None:
    worker.put(range(255))
    assert worker.queue.admits(1)
    worker.put([255])
    assert not worker.queue.admits(1)


def test_a_queue_is_bounded_in_bytes(worker: Worker) -> None:
    worker.put("ab", 100)
    assert (worker.queue.admits(MIB - 200), worker.queue.admits(MIB - 199)) == (True, False)
    worker.loop.run(60)
    worker.put("c", 100)
    assert (worker.queue.admits(MIB - 100), worker.queue.admits(MIB - 99)) == (True, False)


def test_an_item_that_is_larger_than_the_queue_waits_alone(worker: Worker) -> None:
    assert worker.queue.admits(10 * MIB)
    worker.put("a", 10 * MIB)
    assert not worker.queue.admits(1)


def test_work_waits_while_the_worker_has_requests(worker: Worker) -> None:
    worker.load.waiting = 1
    worker.put("a")
    worker.loop.run(0.0205)
    assert worker.done == []
    worker.load.waiting = 0
    worker.loop.run(60)
    # It looks again in each pause.
    assert worker.done == [("a", 11 * PAUSE)]


@pytest.mark.parametrize(
    ("took", "reviews", "second"),
    [
        # The first work begins at 2 ms. After 100 ms without a review, the pause is four times the duration.
        (0.01, [0.0], 0.1),
        (0.01, [0.0, 0.05], 0.15),
        (0.05, [0.0], 0.052 + 4 * 0.05),
        (0.0, [], PAUSE),
        # While reviews come, it is forty times the duration.
        (0.01, [number / 20 for number in range(20)], 0.012 + 40 * 0.01),
    ],
    ids=["short", "a later review", "long", "nothing else", "under load"],
)
def test_the_pause_depends_on_the_work_and_on_reviews(
    monkeypatch: pytest.MonkeyPatch, took: float, reviews: list[float], second: float
) -> None:
    worker = Worker(monkeypatch, took)
    for time in reviews:
        worker.loop.call_later(time, worker.queue.note_review)
    worker.put("ab")
    worker.loop.run(60)
    assert worker.done == [("a", PAUSE), ("b", pytest.approx(second))]
