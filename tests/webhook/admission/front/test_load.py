from __future__ import annotations

import pytest

from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.admission.front.load import Load


def test_bytes_are_taken_up_to_the_bound() -> None:
    load = Load(Limits(in_flight=100))
    assert (load.take(60), load.take(41), load.take(40), load.body_bytes) == (True, False, True, 100)


def test_bytes_given_back_make_room() -> None:
    load = Load(Limits(in_flight=100))
    load.take(100)
    load.give_back(30)
    assert (load.take(30), load.take(1)) == (True, False)


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
        load.took(seconds)
    load.waiting = waiting
    assert load.is_full is full
