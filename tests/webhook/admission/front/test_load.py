from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.admission.front.bodies import Bodies
from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.admission.front.load import DataWait, Load, Turns

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator


@pytest.mark.parametrize(("waited", "late"), [(0.9, False), (1.0, False), (1.1, True)])
def test_a_request_above_the_waiting_limit_is_late(waited: float, late: bool) -> None:  # noqa: FBT001 -- a table's column
    assert Load(Limits(waiting=1)).is_late(waited) is late


@pytest.mark.parametrize(
    ("most", "pauses"),
    [(0, []), (0.01, [0.01]), (0.05, [0.01, 0.02, 0.02]), (0.5, [0.01, 0.02, 0.04, 0.08, 0.16, 0.19])],
)
def test_pauses_double_up_to_the_limit(most: float, pauses: list[float]) -> None:
    assert list(DataWait(Limits(late_facts=most)).pauses()) == pytest.approx(pauses)


def test_few_reviews_wait_and_only_with_time_left() -> None:
    wait = DataWait(Limits(awaiting_facts=1))
    before = [wait.allows(seconds) for seconds in (0.5, 0.6)]
    with wait.waiting():
        during = wait.allows(0.6)
        with wait.waiting():
            pass
        after_another = wait.allows(0.6)
    assert (before, during, after_another, wait.allows(0.6)) == ([False, True], False, False, True)
    with wait.waiting():
        assert not wait.allows(0.6)


def test_garbage_is_collected_after_every_64_mib_of_bodies() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.itself = self

    load = Load(Limits())
    gc.collect()
    gc.disable()
    try:
        cycle = weakref.ref(Cycle())
        load.count_freed(64 * 1024 * 1024 - 1)
        kept = cycle() is not None
        load.count_freed(1)
        collected = cycle() is None
        # The next collection is as many bytes away.
        cycle = weakref.ref(Cycle())
        load.count_freed(64 * 1024 * 1024 - 1)
        assert (kept, collected, cycle() is not None) == (True, True, True)
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("seconds", "waiting", "full"),
    [
        pytest.param(0.001, 999, False, id="just-below-a-second-of-work"),
        pytest.param(0.001, 1001, True, id="just-above"),
        pytest.param(0.1, 11, True, id="few-that-are-slow"),
        pytest.param(0.1, 1, False, id="one-that-is-slow"),
    ],
)
def test_full_is_more_than_a_second_of_work(seconds: float, waiting: int, full: bool) -> None:  # noqa: FBT001 -- a table's column
    load = Load(Limits(waiting=1))
    for _ in range(1000):
        load.add_duration(seconds)
    load.waiting = waiting
    assert load.is_full is full


def test_one_slow_review_does_not_reject_others() -> None:
    load = Load(Limits(waiting=1))
    load.add_duration(30)
    load.waiting = 100
    assert not load.is_full


def test_full_is_above_the_limit_and_not_at_it() -> None:
    load = Load(Limits(waiting=1))
    load.mean = 0.5
    full = []
    for waiting in (0, 2, 3):
        load.waiting = waiting
        full.append(load.is_full)
    assert full == [False, False, True]


def test_a_review_has_a_share_of_one_in_32_in_the_mean() -> None:
    load = Load(Limits())
    load.add_duration(0.0325)
    assert load.mean == pytest.approx(0.0005 + 0.032 / 32)


def test_a_request_that_another_process_answers_is_no_queued_work() -> None:
    load = Load(Limits())
    seen = [load.waiting]
    load.waiting = 2
    with load.handed_over():
        seen.append(load.waiting)
    with pytest.raises(ValueError, match="failed"), load.handed_over():
        raise ValueError("failed")
    assert [*seen, load.waiting] == [0, 1, 2]


def test_each_limit_of_a_worker_holds_for_its_load() -> None:
    load = Load(Limits(awaiting_facts=0))
    assert not load.data_wait.allows(1)
    assert isinstance(load.bodies, Bodies)


class Loop(asyncio.AbstractEventLoop):
    """An event loop whose iterations the test makes."""

    def __init__(self) -> None:
        self.soon: list[Any] = []
        self.futures: list[asyncio.Future[None]] = []
        self._real = asyncio.new_event_loop()

    def call_soon(self, callback: Any, *_: Any, **__: Any) -> Any:
        self.soon.append(callback)

    def create_future(self) -> asyncio.Future[None]:
        self.futures.append(self._real.create_future())
        return self.futures[-1]

    def time(self) -> float:
        return 7.5

    def iterate(self) -> None:
        """Run what is due, as one iteration does."""
        due, self.soon = self.soon, []
        for callback in due:
            callback()

    def close(self) -> None:
        self._real.close()


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


def slow(loop: Loop) -> Turns:
    """Return turns of which each iteration of the loop has one."""
    load = Load(Limits())
    load.mean = 1
    return Turns(loop, load)


def asks(turns: Turns) -> Coroutine[Any, Any, None] | None:
    """Ask for a turn; None if it is there at once."""
    asking = turns.take()
    try:
        asking.send(None)
    except StopIteration:
        return None
    return asking


def has(asking: Coroutine[Any, Any, None] | None) -> bool:
    """Tell whether a request that waited has its turn, and continue it."""
    assert asking
    try:
        asking.send(None)
    except StopIteration:
        return True
    except RuntimeError:  # a future that is not done
        return False
    return False


def test_the_time_is_that_of_the_loop(loop: Loop) -> None:
    assert slow(loop).now() == 7.5


def test_a_request_that_waited_takes_one_turn(loop: Loop) -> None:
    turns = slow(loop)
    assert asks(turns) is None
    waits = asks(turns)
    loop.iterate()
    # The turn of this iteration is that of the request that waited.
    assert loop.futures[0].done()
    loop.iterate()
    assert has(waits)
    assert asks(turns) is None
    assert asks(turns) is not None


def test_an_idle_loop_is_not_called(loop: Loop) -> None:
    turns = slow(loop)
    assert not loop.soon
    asks(turns)
    asks(turns)
    calls = []
    for _ in range(4):
        calls.append(len(loop.soon))
        loop.iterate()
    assert calls == [1, 1, 0, 0]
    # The next request is counted again.
    asks(turns)
    assert len(loop.soon) == 1


async def taken(turns: Turns, order: list[str], name: str) -> None:
    await turns.take()
    order.append(name)


def test_turns_are_taken_in_order() -> None:
    order: list[str] = []

    async def ask() -> None:
        turns = Turns(asyncio.get_running_loop(), Load(Limits()))
        await asyncio.gather(*(taken(turns, order, str(number)) for number in range(20)))

    asyncio.run(ask())
    assert order == [str(number) for number in range(20)]


@pytest.mark.parametrize(("seconds", "most"), [pytest.param(1, 1, id="slow"), pytest.param(0.0005, 4, id="quick")])
def test_an_iteration_of_the_loop_does_limited_work(seconds: float, most: int) -> None:
    order: list[str] = []
    per_turn: list[int] = []

    async def ask() -> None:
        loop, load = asyncio.get_running_loop(), Load(Limits())
        for _ in range(1000):
            load.add_duration(seconds)
        turns = Turns(loop, load)
        # The second burst finds the state that the first one left.
        for _ in range(2):
            tasks = [loop.create_task(taken(turns, order, "x")) for _ in range(20)]
            while not all(task.done() for task in tasks):
                before = len(order)
                await asyncio.sleep(0)
                per_turn.append(len(order) - before)

    asyncio.run(ask())
    assert (sum(per_turn), max(per_turn)) == (40, most)


def test_a_cancelled_request_takes_no_turn() -> None:
    order: list[str] = []

    async def ask() -> None:
        loop = asyncio.get_running_loop()
        turns = Turns(loop, Load(Limits()))
        tasks = [loop.create_task(taken(turns, order, str(number))) for number in range(4)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(ask())
    assert order == ["0", "1", "3"]
