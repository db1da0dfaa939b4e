"""What a candidate makes of a Lease that others wrote, wrote beside, or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cluster.candidates import Candidate, World


GARBAGE = {
    "another that says no duration": ({"holderIdentity": "x"}, 15),
    "another that lasts less than ours": ({"holderIdentity": "x", "leaseDurationSeconds": 1}, 15),
    "another that lasts longer": ({"holderIdentity": "x", "leaseDurationSeconds": 60}, 60),
    "another that lasts for a year": ({"holderIdentity": "x", "leaseDurationSeconds": 31_536_000}, 300),
    "times in the future": ({"holderIdentity": "x", "renewTime": "2999-01-01T00:00:00.000000Z"}, 15),
    "nothing": ({}, 0),
    "nulls": ({"holderIdentity": None, "leaseDurationSeconds": None, "leaseTransitions": None}, 0),
    "nobody, and too many transitions": ({"holderIdentity": "", "leaseTransitions": 2**31 - 1}, 0),
}


@pytest.mark.parametrize(("spec", "waits"), GARBAGE.values(), ids=GARBAGE)
def test_what_others_recorded(world: World, spec: object, waits: float) -> None:
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


def test_an_answer_that_is_no_lease(world: World) -> None:
    world.write("garbage")
    candidate = world.candidate("a")
    candidate.step()

    assert not candidate.is_leader
    assert candidate.election.trouble.endswith("is not from an API server")


def test_what_others_wrote_beside_it_stays_also_when_it_has_to_be_made_again(world: World, holder: Candidate) -> None:
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


def test_a_deleted_lease_is_made_again_by_its_holder_and_taken_by_nobody_else(
    world: World, holder: Candidate, other: Candidate
) -> None:
    world.delete()
    other.step()
    assert (holder.is_leader, other.is_leader) == (True, False)

    holder.step()
    assert (holder.is_leader, other.is_leader) == (True, False)
    assert world.lease["spec"]["holderIdentity"] == "a"


def test_a_deleted_lease_is_taken_when_its_holder_is_gone_too(
    world: World, holder: Candidate, other: Candidate
) -> None:
    world.delete()
    other.step()
    world.time += 15
    other.step()

    assert (holder.is_leader, other.is_leader) == (False, True)
