"""Runs many tests, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpugate.webhook.policy_tests.cases import Case
from gpugate.webhook.policy_tests.covering import Tally
from gpugate.webhook.policy_tests.errors import CaseFileError
from gpugate.webhook.policy_tests.inline import InlineCase, run_inline
from gpugate.webhook.policy_tests.run import run_case

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.webhook.policy_tests.results import CaseResult
    from gpugate.webhook.policy_tests.setup import Setup
    from gpugate.webhook.report.policy_tested import PolicyCoverage


@dataclass(slots=True)
class Run:
    """What came of the tests that were run, in their order: a result, or why there is none."""

    results: list[tuple[Case | InlineCase, CaseResult | CaseFileError]] = field(default_factory=list)
    coverage: PolicyCoverage | None = None

    @property
    def failed(self) -> list[CaseResult]:
        """The tests whose verdict is not what they expect."""
        return [result for _, result in self.results if not isinstance(result, CaseFileError) and not result.passed]


def run_tests(cases: Iterable[Case | InlineCase], setup: Setup, *, stop: bool = False) -> Run:
    """Run tests; `stop` at the first that does not pass."""
    run, tally = Run(), Tally(setup.bound(setup.config)[0])
    for case in cases:
        result = run_one(case, setup)
        run.results.append((case, result))
        if not isinstance(result, CaseFileError):
            tally.add(result)
        if stop and (isinstance(result, CaseFileError) or not result.passed):
            break
    run.coverage = tally.coverage()
    return run


def run_one(case: Case | InlineCase, setup: Setup) -> CaseResult | CaseFileError:
    """Run a test; return why it cannot be run where it cannot."""
    try:
        return run_case(case, setup) if isinstance(case, Case) else run_inline(case, setup)
    except CaseFileError as error:
        return error
