from __future__ import annotations

import pytest
from load_generator import Load
from open_loop import Schedule


@pytest.mark.parametrize(
    ("now", "due"),
    [
        pytest.param(9.9, 0, id="before-the-first"),
        pytest.param(10.0, 1, id="the-first"),
        pytest.param(10.0099, 2, id="a-timer-that-fires-early"),
        pytest.param(10.01, 2, id="the-second"),
        pytest.param(11.0, 101, id="all-of-a-second-in-which-nothing-was-sent"),
    ],
)
def test_requests_are_due_at_a_constant_rate(now: float, due: int) -> None:
    assert Schedule(rate=100, start=10).due(now) == due


def test_requests_that_wait_behind_a_stall_count_from_the_time_when_they_were_due() -> None:
    schedule, stall_ends = Schedule(rate=100, start=10), 11.0

    waits = Load([stall_ends - schedule.time_of(number) for number in range(schedule.due(stall_ends))])

    assert (waits.latency(0), waits.latency(0.5), waits.latency(1)) == pytest.approx((0, 0.5, 1))
