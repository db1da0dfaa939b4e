from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import pytest

from gpugate.webhook.admission.keeper import ServerClock

TRUE = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
SECOND, DAY = dt.timedelta(seconds=1), dt.timedelta(days=1)


@dataclass
class Machine:
    """A machine with an adjustable wall clock and a monotonic clock; the API server has the true time.

    `clock_skew` is the skew in the last response, a new object for each response.
    """

    seconds: float = 0.0
    set_by: dt.timedelta = dt.timedelta()
    clock_skew: dt.timedelta | None = None

    @property
    def true(self) -> dt.datetime:
        return TRUE + self.seconds * SECOND

    def wall(self) -> dt.datetime:
        return self.true + self.set_by

    def hear(self) -> None:
        self.clock_skew = self.true - self.wall() + dt.timedelta()

    def clock(self) -> ServerClock:
        return ServerClock(self, self.wall, lambda: self.seconds)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_before_a_response_the_local_clock_is_used(machine: Machine) -> None:
    machine.set_by = 5 * SECOND
    assert machine.clock()() == TRUE + 5 * SECOND


@pytest.mark.parametrize("wrong", [-DAY, -7200 * SECOND, 7200 * SECOND, DAY], ids=str)
def test_a_constant_clock_skew_has_no_effect(machine: Machine, wrong: dt.timedelta) -> None:
    machine.set_by = wrong
    machine.hear()
    assert machine.clock()() == machine.true


@pytest.mark.parametrize("jump", [-DAY, DAY], ids=["back", "ahead"])
def test_a_clock_jump_between_responses_has_no_effect(machine: Machine, jump: dt.timedelta) -> None:
    clock = machine.clock()
    machine.hear()
    clock()
    machine.set_by, machine.seconds = jump, 100
    assert clock() == machine.true


@pytest.mark.parametrize("jump", [-DAY, DAY], ids=["back", "ahead"])
def test_a_response_after_a_clock_jump_gives_the_same_time(machine: Machine, jump: dt.timedelta) -> None:
    clock = machine.clock()
    machine.hear()
    clock()
    machine.set_by, machine.seconds = jump, 100
    machine.hear()
    assert clock() == machine.true


def test_the_time_continues_for_days_without_a_response(machine: Machine) -> None:
    clock = machine.clock()
    machine.hear()
    clock()
    machine.seconds = 86_400 * 3
    assert clock() == machine.true


def test_while_suspended_the_time_goes_on() -> None:
    # The monotonic clock counts the time of a suspension; the wall clock is wrong until it is set again.
    machine = Machine()
    clock = machine.clock()
    machine.hear()
    clock()
    machine.seconds, machine.set_by = 18_000, -18_000 * SECOND
    assert clock() == machine.true
