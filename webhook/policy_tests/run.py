"""Runs one test of a case file."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.policy_tests.comparing import compare
from gpugate.webhook.policy_tests.contradictions import refuse_contradictions
from gpugate.webhook.policy_tests.errors import CaseFileError
from gpugate.webhook.policy_tests.prepared import prepared
from gpugate.webhook.policy_tests.results import CaseResult, Judged
from gpugate.webhook.policy_tests.setup import Setup

if TYPE_CHECKING:
    from gpugate.webhook.policy_tests.cases import Case


def run_case(case: Case, setup: Setup | None = None) -> CaseResult:
    """Run a test of a case file.

    Args:
        case: the test.
        setup: what the tests of a run share; give the same one to all of them, for speed.

    Raises:
        CaseFileError: the test is wrong, or something that it names is missing or cannot be read.
    """
    started = time.perf_counter()
    setup = setup or Setup()
    definition = case.definition
    if isinstance(definition, CaseFileError):
        raise definition
    refuse_contradictions(case, definition.expect, {policy.id for policy in CATALOG})
    ready = prepared(case, definition, setup)
    judged = Judged(ready, ready.judge())
    failures = tuple(compare(case, definition, judged, setup))
    return CaseResult(case, failures, (judged,), time.perf_counter() - started)
