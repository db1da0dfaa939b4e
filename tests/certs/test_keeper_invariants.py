"""Whatever happens in whatever order: no client is ever shown a certificate that it does not trust."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keeper_fleet import Fleet, begun
from memory_cluster import START, KilledError


@st.composite
def events(draw: st.DrawFn) -> tuple[str, int]:
    kind = draw(
        st.sampled_from(("wait", "wait", "step", "step", "lead", "restart", "kill", "cut off", "rotate", "rotate"))
    )
    return kind, draw(st.integers(0, 400))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(events(), max_size=60))
def test_no_client_ever_meets_a_certificate_that_it_does_not_trust(happening: list[tuple[str, int]]) -> None:
    fleet = begun()
    for kind, number in happening:
        replica = number % 3
        if kind == "wait":
            fleet.cluster.wait(minutes=number)
            # However long nothing happened, each replica looks at what it serves before it is asked again.
            for each in range(3):
                fleet.step(each)
        elif kind == "step":
            fleet.step(replica)
        elif kind == "lead":
            fleet.lead(replica)
        elif kind == "restart":
            fleet.restart(replica)
            fleet.step(replica)
        elif kind == "rotate":
            fleet.cluster.annotate("gpugate.dev/rotate", str(number))
        elif kind == "kill":
            killed_at_write(fleet, replica, after=number % 4)
        else:
            # Shorter than a certificate lasts: whoever is cut off for longer than that is given up.
            fleet.cut_off(replica, minutes=min(number, 300))
        fleet.check()


def killed_at_write(fleet: Fleet, replica: int, after: int) -> None:
    """End a replica at one of its writes; it comes back with nothing in memory."""
    left = [after]

    def fail(what: str) -> None:
        if what != "read":
            left[0] -= 1
            if left[0] < 0:
                raise KilledError

    fleet.cluster.fail = fail
    try:
        fleet.step(replica)
    except KilledError:
        fleet.restart(replica)
    fleet.cluster.fail = lambda _: None
    fleet.step(replica)


@pytest.mark.parametrize("write", range(5), ids=lambda n: f"at write {n + 1}")
def test_whoever_leads_next_goes_on_where_the_last_was_killed(write: int) -> None:
    fleet = Fleet()
    killed_at_write(fleet, 0, after=write)
    fleet.lead(1)
    fleet.converge()
    assert all(keeper.state.waiting == "" for keeper in fleet.keepers)
    assert fleet.keepers[1].state.authorities
    assert fleet.keepers[1].state.authorities.published_at == START


def test_forty_rotations_pass() -> None:
    fleet = begun()
    signed = set()
    for _ in range(400):
        fleet.cluster.wait(hours=3)
        for number in range(3):
            fleet.step(number)
        fleet.check()
        signed |= fleet.signed_by()
    # The first one, and each that followed.
    assert len(signed) == 41
