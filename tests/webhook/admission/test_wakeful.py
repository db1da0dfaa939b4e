from __future__ import annotations

import itertools
import threading

from gpugate.webhook.admission.keeper import wait


def test_the_wait_counts_the_time_of_a_suspension() -> None:
    # Two readings of the clock, between which the machine was suspended for sixteen hours.
    times = iter([0.0, 0.0, 57_600.0])
    wait(57_600, threading.Event(), lambda: False, lambda: next(times))
    assert next(times, None) is None


def test_a_wake_up_ends_the_wait() -> None:
    wake = threading.Event()
    wake.set()
    wait(1e9, wake, lambda: False)


def test_the_end_condition_is_polled() -> None:
    calls = itertools.count()
    wait(1e9, threading.Event(), lambda: next(calls) == 1)
    assert next(calls) == 2
