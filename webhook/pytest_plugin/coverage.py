"""Which policies the collected tests exercise; of several processes, all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from gpugate.webhook.policy_tests.covering import Tally
from gpugate.webhook.report.policy_tested import PolicyCoverage

if TYPE_CHECKING:
    from gpugate.webhook.policy_tests.results import CaseResult
    from gpugate.webhook.policy_tests.setup import Setup

_KEY: Final = "gpugate_coverage"


class Coverage:
    """Adds up, and says at the end; `wanted` is the least in percent, None where nobody asked."""

    def __init__(self, setup: Setup, wanted: float | None) -> None:
        self.setup = setup
        self._wanted = wanted
        self._tally = Tally(setup.bound(setup.config)[0])
        self._others: list[PolicyCoverage] = []

    def add(self, result: CaseResult) -> None:
        """Take in a test that was run in this process."""
        if self._wanted is not None:
            self._tally.add(result)

    @property
    def total(self) -> PolicyCoverage:
        """What was exercised in all processes."""
        every = [self._tally.coverage(), *self._others]
        bound = dict.fromkeys(policy for each in every for policy in each.bound)
        found = frozenset[str]().union(*(each.found for each in every))
        return PolicyCoverage(tuple(bound), found, frozenset[str]().union(*(each.passed for each in every)))

    @property
    def is_low(self) -> bool:
        """Whether less was exercised than is asked for."""
        return self._wanted is not None and self.total.percent < self._wanted

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand over to the process that collects, or fail the run where too little was exercised."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)  # Any: what xdist can send
        if output is not None:
            mine = self._tally.coverage()
            output[_KEY] = [list(mine.bound), sorted(mine.found), sorted(mine.passed)]
        elif self.is_low and session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # Any: xdist has no types
        """Take in what another process exercised."""
        sent = getattr(node, "workeroutput", {}).get(_KEY)
        if sent:
            bound, found, passed = sent
            self._others.append(PolicyCoverage(tuple(bound), frozenset(found), frozenset(passed)))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how much was exercised, and of what there is no test."""
        if self._wanted is None:
            return
        total = self.total
        enough = f", and {self._wanted:g} % is asked for" if self.is_low else ""
        terminalreporter.section("gpugate policy coverage")
        terminalreporter.line(f"{len(total.covered)}/{len(total.bound)} ({total.percent:.0f} %){enough}")
        for what, policies in (("failing", total.without_failing), ("passing", total.without_passing)):
            if policies:
                terminalreporter.line(f"without a {what} case: {', '.join(policies)}")
