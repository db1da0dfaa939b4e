from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.testing.run import run_tests

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.testing.cases import Case
    from gpugate.webhook.testing.setup import Setup

LIMIT = "nodepools/missing-gpu-limit"
FAILING = f"{{name: a, object: {{base: pool.yaml, patch: {{spec: {{limits: null}}}}}}, expect: {{deny: [{LIMIT}]}}}}"
ANYTHING = "{name: c, object: {base: pool.yaml, patch: {spec: {limits: null}}}, expect: {allow: false, also: any}}"
PASSING = "{name: b, object: pool.yaml, expect: {}}"
WRONG = f"{{name: d, object: pool.yaml, expect: {{deny: [{LIMIT}]}}}}"


@pytest.mark.parametrize(
    ("tests", "found", "passed"),
    [
        ([FAILING, PASSING], True, True),
        ([FAILING], True, False),
        ([PASSING], False, True),
        ([ANYTHING], False, False),
        ([WRONG], False, False),
    ],
)
def test_a_policy_is_covered_by_tests_that_pass_and_say_something_of_it(
    cases: Callable[[str], tuple[Case, ...]],
    setup: Setup,
    tests: list[str],
    found: bool,  # noqa: FBT001 -- a column of the table
    passed: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    coverage = run_tests(cases(f"tests: [{', '.join(tests)}]"), setup).coverage
    assert coverage is not None
    assert (LIMIT in coverage.failing, LIMIT in coverage.passed) == (found, passed)
    assert (LIMIT in coverage.covered) is (found and passed)


def test_a_mutation_is_covered_by_a_test_with_a_change_and_one_without(
    cases: Callable[[str], tuple[Case, ...]], setup: Setup
) -> None:
    tolerating = "{base: pod.yaml, patch: {spec: {tolerations: [{key: nvidia.com/gpu, operator: Exists}]}}}"
    changed = "{name: a, object: pod.yaml, expect: {mutate: [pods/missing-gpu-toleration]}}"
    text = f"tests: [{changed}, {{name: b, object: {tolerating}, expect: {{}}}}]"
    coverage = run_tests(cases(text), setup).coverage
    assert coverage is not None
    assert coverage.covered == ("pods/missing-gpu-toleration",)


def test_only_policies_in_force_count(cases: Callable[[str], tuple[Case, ...]], setup: Setup) -> None:
    coverage = run_tests(cases(f"tests: [{PASSING}]"), setup).coverage
    assert coverage is not None
    assert "pods/mig-without-claim" not in coverage.bound
    text = (
        "tests: [{name: a, object: pool.yaml, config: {policies: {pods/mig-without-claim: {mode: warn}}}, expect: {}}]"
    )
    coverage = run_tests(cases(text), setup).coverage
    assert coverage is not None
    assert "pods/mig-without-claim" in coverage.without_failing


def test_it_stops_at_the_first_that_does_not_pass(cases: Callable[[str], tuple[Case, ...]], setup: Setup) -> None:
    run = run_tests(cases(f"tests: [{PASSING}, {WRONG}, {FAILING}]"), setup, stop=True)
    assert [case.name for case, _ in run.results] == ["b", "d"]
