"""What reports on policy tests show: each test with what was expected and did not come, or came and was not expected."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from gpugate.webhook.report import text
from gpugate.webhook.report.plain import RED, Paint, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.report.located import Place


@dataclass(frozen=True, slots=True)
class Failure:
    """One difference between expectation and verdict; `details` are further lines, such as both of them."""

    message: str
    place: Place
    details: tuple[str, ...] = ()

    def lines(self, paint: Paint | None = None) -> Iterator[str]:
        """Yield the failure as people read it: sentence, place, frame, details."""
        paint = paint or Paint()
        yield plain(self.message)
        left = text.frame_margin(self.place)
        yield f"{left}--> {plain(text.where(self.place))}"
        yield from text.frame(self.place, RED, paint)
        yield from (f"{left} {plain(line)}" for line in self.details)

    def __str__(self) -> str:
        return "\n".join(self.lines())


class Ending(Enum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"
    """It could not be run: the test itself is wrong, or something that it names."""
    UPDATED = "updated"
    """It failed, and its expectations were rewritten."""


@dataclass(frozen=True, slots=True)
class TestedCase:
    """A test that was run.

    `manifests` and `expectations` count what a file with inline expectations holds; both are 0 for a test of a case
    file. `seconds` is how long it took.
    """

    file: str
    line: int
    name: str
    ending: Ending
    failures: tuple[Failure, ...] = ()
    seconds: float = 0.0
    manifests: int = 0
    expectations: int = 0

    __test__ = False  # pytest takes classes that are called Test... for tests


@dataclass(frozen=True, slots=True)
class PolicyCoverage:
    """Which policies were in force, and which of them a test that passed exercised with a finding, and without one.

    A policy that changes objects is exercised by a test in which it does, and by one in which it does not.
    """

    bound: tuple[str, ...]
    found: frozenset[str]
    passed: frozenset[str]

    @property
    def covered(self) -> tuple[str, ...]:
        """The policies that were exercised both ways."""
        return tuple(policy for policy in self.bound if policy in self.found and policy in self.passed)

    @property
    def without_failing(self) -> tuple[str, ...]:
        """The policies that found nothing in any test."""
        return tuple(policy for policy in self.bound if policy not in self.found)

    @property
    def without_passing(self) -> tuple[str, ...]:
        """The policies that no test shows to let anything pass."""
        return tuple(policy for policy in self.bound if policy not in self.passed)

    @property
    def percent(self) -> float:
        """The share that was exercised both ways; 100 where no policy is in force."""
        return 100 * len(self.covered) / len(self.bound) if self.bound else 100.0


@dataclass(frozen=True, slots=True)
class TestReport:
    """A run of tests.

    Attributes:
        cases: the tests, in the order of the files.
        broken: what could not be read, so that its tests are unknown.
        deselected: how many tests were left out by their names.
        coverage: which policies were exercised.
        wanted: the least coverage in percent; None where it was not asked for.
        remarks: sentences about the run.
        exit_code: of the command.
    """

    cases: Sequence[TestedCase]
    broken: Sequence[Failure] = ()
    deselected: int = 0
    coverage: PolicyCoverage | None = None
    wanted: float | None = None
    remarks: Sequence[str] = ()
    exit_code: int = 0

    __test__ = False

    def count(self, ending: Ending) -> int:
        """Return how many tests ended so."""
        return sum(case.ending is ending for case in self.cases)
