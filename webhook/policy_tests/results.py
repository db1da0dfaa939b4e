"""What comes of running a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.webhook.policy_tests.cases import Case
    from gpugate.webhook.policy_tests.inline import InlineCase
    from gpugate.webhook.policy_tests.prepared import Prepared
    from gpugate.webhook.report.policy_tested import Failure


@dataclass(frozen=True, slots=True)
class Judged:
    """One object that was judged, and the verdict on it."""

    ready: Prepared
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A test that was run.

    Attributes:
        case: the test.
        failures: the differences from what it expects. The text of each is a sentence, the place with a frame of the
            file, and what was expected and came.
        judged: the objects that were judged: one, or as many as a file with expectations holds.
        seconds: how long it took.
        expectations: how many a file with expectations holds.
    """

    case: Case | InlineCase
    failures: tuple[Failure, ...]
    judged: tuple[Judged, ...]
    seconds: float = 0.0
    expectations: int = 0

    @property
    def passed(self) -> bool:
        """Whether the verdict is what the test expects."""
        return not self.failures

    @property
    def verdict(self) -> Verdict:
        """The verdict on the object; the last one of a file that holds several."""
        return self.judged[-1].verdict

    @property
    def ruleset(self) -> Ruleset:
        """The rules by which it was judged."""
        return self.judged[-1].ready.ruleset
