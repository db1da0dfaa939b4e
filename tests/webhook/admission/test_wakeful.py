from __future__ import annotations

import itertools
import threading

from gpugate.webhook.admission.keeper import wait


def test_a_machine_that_was_suspended_is_waited_for_no_longer() -> None:
    # Two looks at the clock a second apart, by which sixteen hours have passed.
    times = iter([0.0, 0.0, 57_600.0])
    wait(57_600, threading.Event(), lambda: False, lambda: next(times))
    assert next(times, None) is None


def test_being_woken_ends_it() -> None:
    wake = threading.Event()
    wake.set()
    wait(1e9, wake, lambda: False)


def test_what_is_over_is_asked_again_and_again() -> None:
    asked = itertools.count()
    wait(1e9, threading.Event(), lambda: next(asked) == 1)
    assert next(asked) == 2
