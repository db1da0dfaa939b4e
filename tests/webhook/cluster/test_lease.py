from __future__ import annotations

import datetime as dt
import threading
from typing import TYPE_CHECKING

import pytest
from cluster.candidates import MIDNIGHT

if TYPE_CHECKING:
    from cluster.candidates import Candidate, World

DAY = dt.timedelta(days=1)


def keep(world: World, holder: Candidate, seconds: float) -> None:
    """The holder renews, for as long."""
    end = world.time + seconds
    while world.time < end:
        world.time += holder.step()


def test_the_first_takes_the_lease_at_once(world: World, holder: Candidate) -> None:
    assert holder.is_leader
    assert world.lease["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-21T00:16:40.000000Z",
        "renewTime": "2026-11-21T00:16:40.000000Z",
        "leaseTransitions": 0,
    }


def test_who_renews_keeps_it_and_when_it_was_acquired(world: World, holder: Candidate, other: Candidate) -> None:
    acquired = world.lease["spec"]["acquireTime"]
    for _ in range(50):
        keep(world, holder, 4)
        other.step()

        assert (holder.is_leader, other.is_leader) == (True, False)

    assert world.lease["spec"]["acquireTime"] == acquired
    assert world.lease["spec"]["renewTime"] > acquired


def test_renewing_takes_one_call(world: World, holder: Candidate) -> None:
    holder.calls.clear()
    keep(world, holder, 10)

    assert set(holder.calls) == {"replace"}


def test_who_stops_renewing_loses_it_after_ten_seconds(world: World, holder: Candidate) -> None:
    world.time += 9.9
    assert holder.is_leader
    world.time += 0.1
    assert not holder.is_leader


def test_another_takes_it_when_it_has_not_changed_for_fifteen_seconds(
    world: World, holder: Candidate, other: Candidate
) -> None:
    world.time += 14.9
    other.step()
    assert not other.is_leader

    world.time += 0.1
    other.step()
    assert (holder.is_leader, other.is_leader) == (False, True)
    assert (world.lease["spec"]["holderIdentity"], world.lease["spec"]["leaseTransitions"]) == ("b", 1)


def test_one_that_comes_later_waits_from_when_it_came(world: World, holder: Candidate) -> None:
    assert holder.is_leader
    world.time += 100
    late = world.candidate("late")
    late.step()
    world.time += 14.9
    late.step()

    assert not late.is_leader


def test_who_was_paused_sees_that_it_lost(world: World, holder: Candidate, other: Candidate) -> None:
    world.time += 60
    other.step()
    assert (holder.is_leader, other.is_leader) == (False, True)

    holder.step()
    assert (holder.is_leader, other.is_leader) == (False, True)


def test_who_was_paused_and_not_replaced_goes_on(world: World, holder: Candidate) -> None:
    world.time += 60
    holder.step()

    assert holder.is_leader
    assert world.lease["spec"]["leaseTransitions"] == 0


@pytest.mark.parametrize("part", ["request", "answer"])
def test_a_call_that_hangs_does_not_hold_the_lease(world: World, holder: Candidate, part: str) -> None:
    held_within = []

    def hang() -> None:
        world.time += 30
        held_within.append(holder.is_leader)

    setattr(holder, part, hang)
    holder.step()

    assert not any(held_within)
    assert not holder.is_leader


FAULTS = {"409": 409, "403": 403, "500": 500, "429": 429, "no connection": "request", "no answer": "answer"}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_renewal_that_fails_once_costs_nothing(world: World, holder: Candidate, fault: int | str) -> None:
    world.time += 2
    holder.faults = [fault]
    holder.step()
    keep(world, holder, 20)

    assert holder.is_leader


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_when_no_renewal_succeeds_it_is_lost_in_time(world: World, holder: Candidate, fault: int | str) -> None:
    holder.faults = [fault] * 100
    keep(world, holder, 8)
    assert holder.is_leader
    keep(world, holder, 2)
    assert not holder.is_leader


def test_what_went_wrong_is_said(world: World) -> None:
    candidate = world.candidate("a")
    candidate.faults = [403]
    candidate.step()

    assert candidate.election.trouble == "get leases 'gpugate' in namespace 'guard': 403 Fault"


def test_being_slower_than_another_is_no_trouble(world: World) -> None:
    candidate = world.candidate("a")
    candidate.request = lambda: world.write({"holderIdentity": "b"}) if candidate.calls == ["read", "create"] else None
    candidate.step()

    assert not candidate.is_leader
    assert candidate.election.trouble == ""


def test_a_lease_made_without_an_answer_is_found_to_be_ours(world: World) -> None:
    candidate = world.candidate("a")
    candidate.faults = [None, "answer"]
    candidate.step()
    assert not candidate.is_leader

    candidate.step()
    assert candidate.is_leader


def test_a_write_that_somebody_else_overtook_does_not_count(world: World, holder: Candidate) -> None:
    holder.request = lambda: world.write({"holderIdentity": "b", "leaseDurationSeconds": 15})
    holder.step()

    assert not holder.is_leader
    assert world.lease["spec"]["holderIdentity"] == "b"


CLOCKS = {
    "a day ahead": lambda world: world.moment() + DAY,
    "a day behind": lambda world: world.moment() - DAY,
    "standing still": lambda _: MIDNIGHT,
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_time_of_day_does_not_matter(world: World, clock: str) -> None:
    holder = world.candidate("a", now=lambda: CLOCKS[clock](world))
    other = world.candidate("b")
    holder.step()
    other.step()
    for _ in range(10):
        keep(world, holder, 4)
        other.step()
    assert (holder.is_leader, other.is_leader) == (True, False)

    world.time += 15
    other.step()
    assert (holder.is_leader, other.is_leader) == (False, True)


def test_who_leaves_lets_another_have_it_at_once(world: World, holder: Candidate, other: Candidate) -> None:
    holder.election.release()
    spec = world.lease["spec"]
    other.step()

    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
    assert (holder.is_leader, other.is_leader) == (False, True)


def test_who_cannot_say_that_it_leaves_does_not_hold_it_either(
    world: World, holder: Candidate, other: Candidate
) -> None:
    holder.faults = ["request"]
    holder.election.release()
    other.step()

    assert (holder.is_leader, other.is_leader) == (False, False)
    assert "not released" in holder.election.trouble
    world.time += 15
    other.step()
    assert other.is_leader


def test_who_does_not_hold_it_releases_nothing(world: World, holder: Candidate, other: Candidate) -> None:
    other.election.release()

    assert holder.is_leader
    assert world.lease["spec"]["holderIdentity"] == "a"


def test_running_ends_with_a_release(world: World) -> None:
    candidate, stopped = world.candidate("a"), threading.Event()
    candidate.answer = lambda: stopped.set() if "create" in candidate.calls else None
    candidate.election.run(stopped)

    assert not candidate.is_leader
    assert world.lease["spec"]["holderIdentity"] == ""


def test_a_holder_comes_again_after_two_seconds_and_others_after_up_to_four(
    holder: Candidate, other: Candidate
) -> None:
    assert holder.step() == 2
    assert other.step() == pytest.approx(3.2)  # half way


def test_the_server_says_how_long_to_wait(world: World) -> None:
    candidate = world.candidate("a")
    candidate.faults = [429]
    candidate.retry_after = 7

    assert candidate.step() == 7
