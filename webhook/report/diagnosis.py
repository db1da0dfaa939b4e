"""What is wrong with an installation, and what was looked at to find out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpugate.webhook.report.located import Severity

HEALTHY: Final = 0
BROKEN: Final = 1
INCOMPLETE: Final = 4


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong.

    Attributes:
        severity: an error is something to act on now; a note is only to be known.
        code: what sort of thing, in a word that stays the same: `ca-bundle-expired`.
        found: what is wrong, in a sentence.
        where: the object or address.
        remedy: what to do about it, a command where there is one.
    """

    severity: Severity
    code: str
    found: str
    where: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that was not looked at, and why; `asked` where it should have been."""

    what: str
    reason: str
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One examination.

    Attributes:
        problems: what is wrong, the worst first.
        looked_at: what was looked at, a phrase each.
        gaps: what was not.
        server: the version of the API server.
    """

    problems: tuple[Problem, ...]
    looked_at: tuple[str, ...]
    gaps: tuple[Gap, ...] = ()
    server: str = ""

    @property
    def exit_code(self) -> int:
        """1 with at least one error; else 4 where something could not be looked at; else 0."""
        if self.count(Severity.ERROR):
            return BROKEN
        return INCOMPLETE if any(gap.asked for gap in self.gaps) else HEALTHY

    def count(self, severity: Severity) -> int:
        """Return how many problems have a severity."""
        return sum(problem.severity is severity for problem in self.problems)
