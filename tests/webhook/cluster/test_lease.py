from __future__ import annotations

import datetime as dt
import threading
from typing import TYPE_CHECKING

import pytest
from cluster.candidates import MIDNIGHT

if TYPE_CHECKING:
    from cluster.candidates import Candidate, World

DAY = dt.timedelta(days=1)


def renew(world: World, holder: Candidate, seconds: float) -> None:
    """Let the holder renew for some seconds."""
    end = world.time + seconds
    while world.time < end:
        world.time += holder.step()


def test_the_first_candidate_acquires_the_lease_at_once(world: World, holder: Candidate) -> None:
    assert holder.is_leader
    assert world.lease["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-21T00:16:40.000000Z",
        "renewTime": "2026-11-21T00:16:40.000000Z",
        "leaseTransitions": 0,
    }


def test_a_renewal_keeps_the_lease_and_its_acquire_time(world: World, holder: Candidate, other: Candidate) -> None:
    acquired = world.lease["spec"]["acquireTime"]
    for _ in range(50):
        renew(world, holder, 4)
        other.step()

        assert (holder.is_leader, other.is_leader) == (True, False)

    assert world.lease["spec"]["acquireTime"] == acquired
    assert world.lease["spec"]["renewTime"] > acquired


def test_a_renewal_needs_one_call(world: World, holder: Candidate) -> None:
    holder.calls.clear()
    renew(world, holder, 10)

    assert set(holder.calls) == {"replace"}


def test_a_holder_that_stops_renewing_loses_the_lease_after_ten_seconds(world: World, holder: Candidate) -> None:
    world.time += 9.9
    assert holder.is_leader
    world.time += 0.1
    assert not holder.is_leader


def test_an_unchanged_lease_is_taken_over_after_fifteen_seconds(
    world: World, holder: Candidate, other: Candidate
) -> None:
    world.time += 14.9
    other.step()
    assert not other.is_leader

    world.time += 0.1
    other.step()
    assert (holder.is_leader, other.is_leader) == (False, True)
    assert (world.lease["spec"]["holderIdentity"], world.lease["spec"]["leaseTransitions"]) == ("b", 1)


def test_a_late_candidate_waits_from_its_first_read(world: World, holder: Candidate) -> None:
    assert holder.is_leader
    world.time += 100
    late = world.candidate("late")
    late.step()
    world.time += 14.9
    late.step()

    assert not late.is_leader


def test_a_paused_holder_sees_that_it_lost_the_lease(world: World, holder: Candidate, other: Candidate) -> None:
    world.time += 60
    other.step()
    assert (holder.is_leader, other.is_leader) == (False, True)

    holder.step()
    assert (holder.is_leader, other.is_leader) == (False, True)


def test_a_paused_holder_without_a_successor_continues(world: World, holder: Candidate) -> None:
    world.time += 60
    holder.step()

    assert holder.is_leader
    assert world.lease["spec"]["leaseTransitions"] == 0


@pytest.mark.parametrize("part", ["request", "answer"])
def test_a_hanging_call_does_not_extend_the_lease(world: World, holder: Candidate, part: str) -> None:
    leadership = []

    def hang() -> None:
        world.time += 30
        leadership.append(holder.is_leader)

    setattr(holder, part, hang)
    holder.step()

    assert not any(leadership)
    assert not holder.is_leader


FAULTS = {"409": 409, "403": 403, "500": 500, "429": 429, "no connection": "request", "no response": "answer"}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_one_failed_renewal_does_not_lose_the_lease(world: World, holder: Candidate, fault: int | str) -> None:
    world.time += 2
    holder.faults = [fault]
    holder.step()
    renew(world, holder, 20)

    assert holder.is_leader


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_lease_is_lost_if_every_renewal_fails(world: World, holder: Candidate, fault: int | str) -> None:
    holder.faults = [fault] * 100
    renew(world, holder, 8)
    assert holder.is_leader
    renew(world, holder, 2)
    assert not holder.is_leader


def test_failures_are_reported(world: World) -> None:
    candidate = world.candidate("a")
    candidate.faults = [403]
    candidate.step()

    assert candidate.election.trouble == "get leases 'gpugate' in namespace 'guard': 403 Fault"


def test_a_conflict_is_not_reported(world: World) -> None:
    candidate = world.candidate("a")
    candidate.request = lambda: world.write({"holderIdentity": "b"}) if candidate.calls == ["read", "create"] else None
    candidate.step()

    assert not candidate.is_leader
    assert candidate.election.trouble == ""


def test_a_lease_created_without_a_response_is_recognized(world: World) -> None:
    candidate = world.candidate("a")
    candidate.faults = [None, "answer"]
    candidate.step()
    assert not candidate.is_leader

    candidate.step()
    assert candidate.is_leader


def test_a_conflicting_renewal_does_not_extend_the_lease(world: World, holder: Candidate) -> None:
    holder.request = lambda: world.write({"holderIdentity": "b", "leaseDurationSeconds": 15})
    holder.step()

    assert not holder.is_leader
    assert world.lease["spec"]["holderIdentity"] == "b"


CLOCKS = {
    "a day ahead": lambda world: world.moment() + DAY,
    "a day behind": lambda world: world.moment() - DAY,
    "stopped": lambda _: MIDNIGHT,
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_wall_clock_does_not_matter(world: World, clock: str) -> None:
    holder = world.candidate("a", now=lambda: CLOCKS[clock](world))
    other = world.candidate("b")
    holder.step()
    other.step()
    for _ in range(10):
        renew(world, holder, 4)
        other.step()
    assert (holder.is_leader, other.is_leader) == (True, False)

    world.time += 15
    other.step()
    assert (holder.is_leader, other.is_leader) == (False, True)


def test_a_released_lease_is_acquired_at_once(world: World, holder: Candidate, other: Candidate) -> None:
    holder.election.release()
    spec = world.lease["spec"]
    other.step()

    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
    assert (holder.is_leader, other.is_leader) == (False, True)


def test_a_failed_release_gives_up_leadership(world: World, holder: Candidate, other: Candidate) -> None:
    holder.faults = ["request"]
    holder.election.release()
    other.step()

    assert (holder.is_leader, other.is_leader) == (False, False)
    assert "not released" in holder.election.trouble
    world.time += 15
    other.step()
    assert other.is_leader


def test_only_the_holder_releases_the_lease(world: World, holder: Candidate, other: Candidate) -> None:
    other.election.release()

    assert holder.is_leader
    assert world.lease["spec"]["holderIdentity"] == "a"


def test_run_ends_with_a_release(world: World) -> None:
    candidate, stopped = world.candidate("a"), threading.Event()
    candidate.answer = lambda: stopped.set() if "create" in candidate.calls else None
    candidate.election.run(stopped)

    assert not candidate.is_leader
    assert world.lease["spec"]["holderIdentity"] == ""


def test_holders_wait_two_seconds_and_candidates_up_to_four(holder: Candidate, other: Candidate) -> None:
    assert holder.step() == 2
    assert other.step() == pytest.approx(3.2)  # half way


def test_retry_after_is_respected(world: World) -> None:
    candidate = world.candidate("a")
    candidate.faults = [429]
    candidate.retry_after = 7

    assert candidate.step() == 7
