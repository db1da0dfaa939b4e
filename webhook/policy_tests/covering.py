"""Adds up which policies the tests exercise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.policy_tests.cases import Case
from gpugate.webhook.policy_tests.errors import CaseFileError
from gpugate.webhook.report.policy_tested import PolicyCoverage

if TYPE_CHECKING:
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Outcome
    from gpugate.webhook.policy_tests.results import CaseResult


class Tally:
    """What the tests of a run exercise; only tests that pass count, because one that fails shows nothing."""

    def __init__(self, ruleset: Ruleset) -> None:
        """Start with the policies that are in force where a test says nothing else."""
        self._bound = {rule.policy.id for rule in ruleset.rules}
        self._found: set[str] = set()
        self._passed: set[str] = set()

    def add(self, result: CaseResult) -> None:
        """Take in a test that was run."""
        self._bound |= {rule.policy.id for rule in result.ruleset.rules}
        if not result.passed:
            return
        named = _named(result)
        for judged in result.judged:
            for outcome in judged.verdict.outcomes:
                if _finds(outcome):
                    if named is None or outcome.policy in named:
                        self._found.add(outcome.policy)
                elif named is None and not outcome.skipped and not outcome.error:
                    self._passed.add(outcome.policy)

    def coverage(self) -> PolicyCoverage:
        """Return what was exercised, policies in the order of the catalogue."""
        bound = tuple(policy.id for policy in CATALOG if policy.id in self._bound)
        return PolicyCoverage(bound, frozenset(self._found), frozenset(self._passed))


def _finds(outcome: Outcome) -> bool:
    return bool(outcome.findings or outcome.patches or outcome.template_patches)


def _named(result: CaseResult) -> set[str] | None:
    """The policies of which a test says something; None when it says something of every one, as most do."""
    definition = result.case.definition if isinstance(result.case, Case) else None
    if definition is None or isinstance(definition, CaseFileError) or definition.expect.also is None:
        return None
    expect = definition.expect
    return {*expect.deny, *expect.warn, *expect.record, *expect.mutate}
