"""Test that clients trust every serving certificate, for random sequences of events."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keeper_fleet import Fleet, started_fleet
from memory_cluster import START, KilledError


@st.composite
def events(draw: st.DrawFn) -> tuple[str, int]:
    kind = draw(
        st.sampled_from(("wait", "wait", "step", "step", "lead", "restart", "kill", "cut off", "rotate", "rotate"))
    )
    return kind, draw(st.integers(0, 400))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(events(), max_size=60))
def test_clients_always_trust_the_serving_certificates(sequence: list[tuple[str, int]]) -> None:
    fleet = started_fleet()
    for kind, number in sequence:
        replica = number % 3
        if kind == "wait":
            fleet.cluster.wait(minutes=number)
            # After any pause, every replica checks its certificate before the next handshake.
            for replica_number in range(3):
                fleet.step(replica_number)
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
            # The time is shorter than the lifetime of a certificate, because a longer outage makes a replica untrusted.
            fleet.cut_off(replica, minutes=min(number, 300))
        fleet.check()


def killed_at_write(fleet: Fleet, replica: int, after: int) -> None:
    """Kill a replica at one of its writes; it restarts without a state in memory."""
    writes_left = [after]

    def fail(call: str) -> None:
        if call != "read":
            writes_left[0] -= 1
            if writes_left[0] < 0:
                raise KilledError

    fleet.cluster.fail = fail
    try:
        fleet.step(replica)
    except KilledError:
        fleet.restart(replica)
    fleet.cluster.fail = lambda _: None
    fleet.step(replica)


@pytest.mark.parametrize("write", range(5), ids=lambda n: f"at write {n + 1}")
def test_the_next_leader_continues_after_a_kill(write: int) -> None:
    fleet = Fleet()
    killed_at_write(fleet, 0, after=write)
    fleet.lead(1)
    fleet.converge()
    assert all(keeper.state.waiting == "" for keeper in fleet.keepers)
    assert fleet.keepers[1].state.authorities
    assert fleet.keepers[1].state.authorities.published_at == START


def test_forty_rotations_succeed() -> None:
    fleet = started_fleet()
    signed = set()
    for _ in range(400):
        fleet.cluster.wait(hours=3)
        for number in range(3):
            fleet.step(number)
        fleet.check()
        signed |= fleet.signed_by()
    # The initial one and the forty that followed.
    assert len(signed) == 41
