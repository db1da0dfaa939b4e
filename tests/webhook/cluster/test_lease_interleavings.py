"""Test that at most one candidate holds the Lease, for random interleavings.

Calls fail at random. During a call, time passes and other candidates take steps, with further steps inside their calls.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from cluster.candidates import MIDNIGHT, Candidate, World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = st.sampled_from([0.5, 4.0, 10.0, 11.0, 30.0])
FAULTS = st.sampled_from([None] * 20 + [403, 409, 500, "request", "answer"])
# The fastest clock runs 1.41 times as fast as the slowest; 1.5 would be too much.
RATES = st.permutations([0.85, 1.0, 1.2])
ACTIONS = st.sampled_from(["step", "step", "step", "pass", "pass", "pass", "release", "delete"])
MAX_DEPTH = 2


class Interleaving:
    """Three candidates and the draws of hypothesis; `most` is the largest number of leaders at the same time."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.world = World()
        rates = data.draw(RATES)
        self.candidates = [self.candidate(name, rate) for name, rate in zip("abc", rates, strict=True)]
        self.busy: list[Candidate] = []
        self.deleted = False
        self.most = 0
        # Each candidate must know the Lease before it can be deleted.
        for candidate in self.candidates:
            candidate.step()
        for candidate in self.candidates:
            candidate.request = candidate.answer = self.interrupt

    def candidate(self, name: str, rate: float) -> Candidate:
        clock: Callable[[], dt.datetime] | None = None
        if self.data.draw(st.booleans(), label=f"{name}'s wall clock is wrong"):
            days = st.integers(-1000, 1000)
            clock = lambda: MIDNIGHT + dt.timedelta(days=self.data.draw(days))  # noqa: E731 -- it draws each time
        return self.world.candidate(name, rate, clock)

    def interrupt(self) -> None:
        meanwhile = self.data.draw(st.integers(0, 4)) if len(self.busy) < MAX_DEPTH else 0
        for _ in range(meanwhile):
            self.act()

    def pass_time(self) -> None:
        self.count()
        self.world.time += self.data.draw(SECONDS)
        self.count()

    def count(self) -> None:
        self.most = max(self.most, sum(candidate.is_leader for candidate in self.candidates))

    def act(self) -> None:
        action = self.data.draw(ACTIONS)
        idle = [candidate for candidate in self.candidates if candidate not in self.busy]
        if action == "pass" or not idle:
            self.pass_time()
        elif action == "delete":
            self.delete()
        else:
            candidate = self.data.draw(st.sampled_from(idle))
            candidate.faults = [self.data.draw(FAULTS) for _ in range(3)]
            self.busy.append(candidate)
            if action == "step":
                candidate.step()
            else:
                candidate.election.release()
            self.busy.remove(candidate)
        self.count()

    def delete(self) -> None:
        # After a second deletion, a candidate could mistake the second absence for the first.
        if not self.deleted:
            self.world.delete()
            self.deleted = True


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_at_most_one_candidate_is_the_leader(data: st.DataObject) -> None:
    interleaving = Interleaving(data)
    for _ in range(data.draw(st.integers(5, 30))):
        interleaving.act()

    assert interleaving.most <= 1
