"""Turns what came of tests into what reports show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.policy_tests.errors import CaseFileError
from gpugate.webhook.policy_tests.inline import InlineCase
from gpugate.webhook.report.policy_tested import Ending, Failure, TestedCase

if TYPE_CHECKING:
    from gpugate.webhook.policy_tests.cases import Case
    from gpugate.webhook.policy_tests.results import CaseResult


def reported(case: Case | InlineCase, result: CaseResult | CaseFileError, *, updated: bool = False) -> TestedCase:
    """Return a test as reports show it; `updated` when its expectations were rewritten."""
    if isinstance(result, CaseFileError):
        return TestedCase(case.file, case.line, case.name, Ending.BROKEN, (mistake(result),))
    ending = Ending.UPDATED if updated else Ending.PASSED if result.passed else Ending.FAILED
    manifests = len(result.judged) if isinstance(case, InlineCase) else 0
    return TestedCase(
        case.file, case.line, case.name, ending, result.failures, result.seconds, manifests, result.expectations
    )


def mistake(error: CaseFileError) -> Failure:
    """Return what keeps a test from being run as reports show it."""
    return Failure(error.message, error.place)
