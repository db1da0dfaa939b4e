"""The results of policy tests in the form of reports: each test with its differences from the expectations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from gpugate.webhook.report import text
from gpugate.webhook.report.plain import RED, Paint, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.report.located import Location


@dataclass(frozen=True, slots=True)
class Failure:
    """One difference between expectation and verdict; `details` are further lines, such as both of them."""

    message: str
    location: Location
    details: tuple[str, ...] = ()

    def lines(self, paint: Paint | None = None) -> Iterator[str]:
        """Yield the lines of the failure: sentence, location, frame, details."""
        paint = paint or Paint()
        yield plain(self.message)
        left = text.frame_margin(self.location)
        yield f"{left}--> {plain(text.where(self.location))}"
        yield from text.frame(self.location, RED, paint)
        yield from (f"{left} {plain(line)}" for line in self.details)

    def __str__(self) -> str:
        return "\n".join(self.lines())


class Ending(Enum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"
    """It could not be run: the test itself or a file that it names is invalid."""
    UPDATED = "updated"
    """It failed, and its expectations were rewritten."""


@dataclass(frozen=True, slots=True)
class TestedCase:
    """A test that was run.

    `manifests` and `expectations` count those of a file with inline expectations; both are 0 for a test of a case file.
    `seconds` is its duration. `can_update` says whether `--update` can rewrite its expectations.
    """

    file: str
    line: int
    name: str
    ending: Ending
    failures: tuple[Failure, ...] = ()
    seconds: float = 0.0
    manifests: int = 0
    expectations: int = 0
    can_update: bool = True

    __test__ = False  # pytest takes classes that are called Test... for tests


@dataclass(frozen=True, slots=True)
class PolicyCoverage:
    """The policies in force, and those that passing tests exercised with a finding (`failing`) and without (`passed`).

    A patch counts as a finding of a mutating policy.
    """

    bound: tuple[str, ...]
    failing: frozenset[str]
    passed: frozenset[str]

    @property
    def covered(self) -> tuple[str, ...]:
        """The policies that were exercised both ways."""
        return tuple(policy for policy in self.bound if policy in self.failing and policy in self.passed)

    @property
    def without_failing(self) -> tuple[str, ...]:
        """The policies without a finding in any test."""
        return tuple(policy for policy in self.bound if policy not in self.failing)

    @property
    def without_passing(self) -> tuple[str, ...]:
        """The policies without a test in which they have no finding."""
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
        broken: the files that could not be read, so that their tests are unknown.
        deselected: the number of tests that were excluded by name.
        coverage: the exercised policies.
        wanted: the minimum coverage in percent; None if it was not requested.
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
        """Return the number of tests with an ending."""
        return sum(case.ending is ending for case in self.cases)
