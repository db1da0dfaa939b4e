"""Policies outside the library are charged with their failures in memory that all processes share."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.admission.policy_guard import (
    MOST_FAILURES,
    MOST_SECONDS,
    OFF_SECONDS,
    Guard,
    Limits,
    PolicyTimeoutError,
    seconds_starved,
    trial,
)
from gpugate.webhook.own_policies.sources import OwnPolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator

SET, OTHER = b"1" * 32, b"2" * 32


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> Guard:
    guard = Guard(2, clock)
    guard.accept(SET)
    return guard


def fail(guard: Guard, times: int) -> None:
    for _ in range(times):
        guard.failed(3)


def test_repeated_failures_switch_a_policy_off_for_some_time(guard: Guard, clock: Clock) -> None:
    fail(guard, MOST_FAILURES - 1)
    assert not guard.is_off(3)

    fail(guard, 1)
    assert (guard.is_off(3), guard.is_off(2)) == (True, False)
    clock.now += OFF_SECONDS
    assert not guard.is_off(3)


def test_after_the_time_one_failure_switches_it_off_again_and_a_success_forgets_all(guard: Guard, clock: Clock) -> None:
    fail(guard, MOST_FAILURES)
    clock.now += OFF_SECONDS
    fail(guard, 1)
    assert guard.is_off(3)

    clock.now += OFF_SECONDS
    guard.succeeded(3)
    fail(guard, MOST_FAILURES - 1)
    assert not guard.is_off(3)


def test_a_success_in_between_keeps_it_on(guard: Guard) -> None:
    for _ in range(3):
        fail(guard, MOST_FAILURES - 1)
        guard.succeeded(3)
    assert not guard.is_off(3)


def test_a_death_is_charged_to_the_policy_that_was_called(guard: Guard) -> None:
    guard.begin(1)
    guard.running(1, 3)
    assert (guard.died(os.getpid() + 1), guard.died(os.getpid()), guard.failures(3)) == (None, 3, 4)
    # The process is gone.
    assert guard.died(os.getpid()) is None


def test_a_death_between_calls_is_charged_to_none(guard: Guard) -> None:
    guard.begin(1)
    guard.running(1, 3)
    guard.running(1, None)
    assert guard.died(os.getpid()) is None


def test_another_set_starts_without_failures(guard: Guard) -> None:
    fail(guard, MOST_FAILURES)
    guard.accept(SET)
    assert guard.is_off(3)

    guard.accept(OTHER)
    assert (guard.accepted, guard.is_off(3)) == (OTHER[:16], False)


@pytest.fixture
def alarm() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize(
    ("waited", "starved", "is_too_long"),
    [
        (MOST_SECONDS / 2, 0.0, False),
        (MOST_SECONDS, 0.0, True),
        (MOST_SECONDS * 4, MOST_SECONDS * 3.5, False),
        (MOST_SECONDS * 4, MOST_SECONDS * 2.5, True),
    ],
)
def test_a_call_is_not_charged_for_waiting_for_a_processor(
    clock: Clock, waited: float, starved: float, *, is_too_long: bool
) -> None:
    of_thread = Clock()
    limits = Limits(clock, of_thread)

    def run(_subject: Any, _ctx: Any) -> Iterator[str]:
        # Two ticks of the timer.
        for _ in range(2):
            of_thread.now += starved / 2
            clock.now += waited / 2
            signal.raise_signal(signal.SIGALRM)
        yield "found"

    def called() -> list[Any]:
        return limits.call(run, None, None)  # type: ignore[arg-type]

    if is_too_long:
        with pytest.raises(PolicyTimeoutError):
            called()
    else:
        assert called() == ["found"]
    limits.disarm()


def spin(processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    while True:
        pass


def starve(processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    end = time.monotonic() + 60
    while seconds_starved() < 0.05 and time.monotonic() < end:
        pass
    os._exit(0 if seconds_starved() >= 0.05 else 1)


def test_the_kernel_counts_how_long_a_thread_waits_for_a_processor() -> None:
    if not seconds_starved():
        pytest.skip("this kernel does not count it")
    fork, processor = multiprocessing.get_context("fork"), min(os.sched_getaffinity(0))
    beside, starved = (fork.Process(target=run, args=(processor,), daemon=True) for run in (spin, starve))
    beside.start()
    try:
        starved.start()
        starved.join()
        assert starved.exitcode == 0
    finally:
        beside.kill()
        beside.join()


def ends() -> None:
    os._exit(3)


def hangs() -> None:
    time.sleep(60)


def allocates() -> None:
    bytearray(1 << 30)


def test_a_trial_is_limited_in_time_and_memory() -> None:
    with pytest.raises(OwnPolicyError, match=r"the policies are not loaded within 0.2 s: remove slow code"):
        trial(hangs, 0.2)
    with pytest.raises(OwnPolicyError, match=r"the policies cannot be used \(MemoryError\)"):
        trial(allocates)


def test_a_trial_reports_what_the_process_did() -> None:
    trial(lambda: None)
    with pytest.raises(OwnPolicyError, match=r"a policy ends the process while it is loaded \(exit code 3\)"):
        trial(ends)
