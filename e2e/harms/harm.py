"""How a harm is written: what is given on both sides, what happens without gpugate, and that it does not with it.

@pytest.mark.harm("nodepools/example")
def test_something_bad_happens(harm: Harm) -> None:
    for side in harm.sides:
        side.create(side.pool(["g5.xlarge"]), side.pod("train"))
    harm.happens("The Pod was evicted", lambda: harm.without.ended("train"))
    harm.prevented("it stays", lambda: harm.guarded.running("train"))
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from cluster.simulated_types import price

from harms.side import SOON_SECONDS, gpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harms.side import Side

Object = dict[str, Any]
T = TypeVar("T")

# Karpenter looks at what to disrupt every ten seconds, then waits fifteen before it acts, on one command at a time.
PATIENCE_SECONDS = 300.0
_HOURS = 24


@dataclass(frozen=True)
class Seen:
    """What is said of a harm: whole sentences; a cost of a day, 0 where nothing was wasted.

    `seconds` are from what was given until it had happened.
    """

    policy: str
    test: str
    happened: str
    seconds: float
    prevented: str
    gpu_hours: int
    dollars: float


class Harm:
    """A harm that a policy prevents, shown in a thread of its own beside others.

    Args:
        policy: its id.
        test: where it is written, as pytest names it.
        without: the side where the API server does not ask gpugate.
        guarded: the side where it does.
    """

    def __init__(self, policy: str, test: str, without: Side, guarded: Side) -> None:
        self.policy = policy
        self.test = test
        self.without = without
        self.guarded = guarded
        self.sides = (without, guarded)
        self._started = time.monotonic()
        self._happened = ""
        self._seconds = 0.0
        self._prevented = ""
        self._gpus_wasted = 0
        self._dollars_wasted = 0.0

    def run(self, show: Callable[[Harm], None]) -> Seen:
        """Show it.

        Raises:
            AssertionError: it did not happen, or gpugate did not prevent it.
        """
        threading.current_thread().name = self.without.name
        for side in self.sides:
            side.open()
        self._started = time.monotonic()
        show(self)
        assert self._happened, "say what happens: `harm.happens`"
        assert self._prevented, "say what prevents it: `harm.prevented`, or `harm.refused`"
        return Seen(
            self.policy,
            self.test,
            self._happened,
            round(self._seconds, 1),
            self._prevented,
            self._gpus_wasted * _HOURS,
            round(self._dollars_wasted * _HOURS, 2),
        )

    def happens(self, sentence: str, condition: Callable[[], T], within: float = PATIENCE_SECONDS) -> T:
        """Wait until the harm is there; return what the condition gives.

        Raises:
            TooLateError: it did not happen: then what the policy says of it is wrong.
        """
        found = self.without.until(condition, sentence, within)
        self._happened = sentence
        self._seconds = time.monotonic() - self._started
        return found

    def prevented(self, sentence: str, condition: Callable[[], T], within: float = PATIENCE_SECONDS) -> T:
        """Wait until it is plain that the harm does not happen to the guarded side; return what the condition gives.

        A condition is something that was done or said, such as an event, after the same chance as the harm had: never
        that nothing has happened yet.
        """
        found = self.guarded.until(condition, sentence, within)
        self._prevented = sentence
        return found

    def refused(self, obj: Object, instead: str = "") -> None:
        """Prove that gpugate denies what did the harm, or warns of it, by this policy; say so."""
        answer = self.guarded.asked(obj)
        said = answer.warnings if answer.ok else [answer.message]
        assert any(self.policy in text for text in said), f"{self.policy} is not in {said}"
        outcome = "gets a warning" if answer.ok else "is denied"
        sentence = f"the {obj['kind']} {outcome}"
        self._prevented = f"{sentence}; {instead}" if instead else sentence

    def wastes(self, nodes: Iterable[Object], instead: Iterable[Object] = ()) -> None:
        """Say which nodes are paid for in vain; what would have to be paid `instead` is not."""
        for sign, each in [(1, node) for node in nodes] + [(-1, node) for node in instead]:
            self._gpus_wasted += sign * gpus(each)
            self._dollars_wasted += sign * price(each["metadata"]["labels"]["node.kubernetes.io/instance-type"])


__all__ = ["PATIENCE_SECONDS", "SOON_SECONDS", "Harm", "Seen"]
