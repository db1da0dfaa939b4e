"""Policies outside the library are charged with their failures in memory that all processes share."""

from __future__ import annotations

import os
import time

import pytest

from gpugate.webhook.admission.policy_guard import MOST_FAILURES, OFF_SECONDS, Guard, trial
from gpugate.webhook.own_policies.sources import OwnPolicyError

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
