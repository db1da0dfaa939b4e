"""Test how candidates handle a Lease that other clients wrote, extended or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cluster.candidates import Candidate, World


GARBAGE = {
    "a holder without a duration": ({"holderIdentity": "x"}, 15),
    "a holder with a shorter duration": ({"holderIdentity": "x", "leaseDurationSeconds": 1}, 15),
    "a holder with a longer duration": ({"holderIdentity": "x", "leaseDurationSeconds": 60}, 60),
    "a holder with a duration of a year": ({"holderIdentity": "x", "leaseDurationSeconds": 31_536_000}, 300),
    "times in the future": ({"holderIdentity": "x", "renewTime": "2999-01-01T00:00:00.000000Z"}, 15),
    "nothing": ({}, 0),
    "nulls": ({"holderIdentity": None, "leaseDurationSeconds": None, "leaseTransitions": None}, 0),
    "no holder, and too many transitions": ({"holderIdentity": "", "leaseTransitions": 2**31 - 1}, 0),
}


@pytest.mark.parametrize(("spec", "waits"), GARBAGE.values(), ids=GARBAGE)
def test_records_of_other_clients(world: World, spec: object, waits: float) -> None:
    world.write(spec)
    candidate = world.candidate("a")
    candidate.step()
    if waits:
        world.time += waits - 0.1
        candidate.step()
        assert not candidate.is_leader
        world.time += 0.1
        candidate.step()

    assert candidate.is_leader
    assert world.lease["spec"]["leaseTransitions"] < 2**31


def test_a_response_that_is_not_a_lease(world: World) -> None:
    world.write("garbage")
    candidate = world.candidate("a")
    candidate.step()

    assert not candidate.is_leader
    assert candidate.election.trouble.endswith("is not from an API server")


def test_metadata_of_other_clients_remains_when_the_lease_is_recreated(world: World, holder: Candidate) -> None:
    world.write(world.lease["spec"], labels={"team": "ml"}, annotations={"note": "x"})
    holder.step()

    assert holder.is_leader
    assert world.lease["metadata"]["labels"] == {"team": "ml"}
    assert world.lease["metadata"]["annotations"] == {"note": "x"}

    world.delete()
    holder.step()

    assert holder.is_leader
    assert world.lease["metadata"]["labels"] == {"team": "ml"}
    assert world.lease["metadata"]["annotations"] == {"note": "x"}


def test_a_deleted_lease_is_recreated_by_its_holder(world: World, holder: Candidate, other: Candidate) -> None:
    world.delete()
    other.step()
    assert (holder.is_leader, other.is_leader) == (True, False)

    holder.step()
    assert (holder.is_leader, other.is_leader) == (True, False)
    assert world.lease["spec"]["holderIdentity"] == "a"


def test_a_deleted_lease_is_acquired_after_its_duration(world: World, holder: Candidate, other: Candidate) -> None:
    world.delete()
    other.step()
    world.time += 15
    other.step()

    assert (holder.is_leader, other.is_leader) == (False, True)
