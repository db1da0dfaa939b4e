"""The result of `gpugate doctor`, as text and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.webhook.report.located import Severity
from gpugate.webhook.report.plain import BLUE, BOLD, CYAN, RED, YELLOW, Paint, plain, plain_json

if TYPE_CHECKING:
    from collections.abc import Iterator

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


SCHEMA: Final = "gpugate.dev/doctor/v1"


def write_json(diagnosis: Diagnosis) -> str:
    """Write a diagnosis."""
    document = {
        "schema": SCHEMA,
        "healthy": not diagnosis.exit_code,
        "problems": [
            {
                "severity": problem.severity.value,
                "code": problem.code,
                "found": problem.found,
                "where": problem.where,
                "remedy": problem.remedy,
            }
            for problem in diagnosis.problems
        ],
        "looked_at": list(diagnosis.looked_at),
        "not_looked_at": [{"what": gap.what, "reason": gap.reason, "asked": gap.asked} for gap in diagnosis.gaps],
        "summary": {
            "errors": diagnosis.count(Severity.ERROR),
            "warnings": diagnosis.count(Severity.WARNING),
            "notes": diagnosis.count(Severity.NOTE),
            "kubernetes": diagnosis.server,
            "exit_code": diagnosis.exit_code,
        },
    }
    return plain_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


_COLOURS: Final = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.NOTE: CYAN}


def write_text(diagnosis: Diagnosis, paint: Paint | None = None) -> str:
    """Write a diagnosis."""
    paint = paint or Paint()
    blocks = ["\n".join(_problem(problem, paint)) for problem in diagnosis.problems]
    blocks.append("\n".join(_summary(diagnosis)))
    return "\n\n".join(blocks) + "\n"


def _problem(problem: Problem, paint: Paint) -> Iterator[str]:
    head = f"{problem.severity.value}[{problem.code}]"
    yield f"{paint(head, BOLD, _COLOURS[problem.severity])}: {paint(plain(problem.found), BOLD)}"
    yield f" {paint('-->', BLUE)} {plain(problem.where)}"
    yield f"  {paint('=', BLUE)} fix: {plain(problem.remedy)}"


def _summary(diagnosis: Diagnosis) -> Iterator[str]:
    counts = ", ".join(_count(diagnosis.count(severity), severity.value) for severity in Severity)
    server = f" of a Kubernetes {plain(diagnosis.server)} cluster" if diagnosis.server else ""
    yield f"Looked at {_count(len(diagnosis.looked_at), 'part')} of the installation{server}: {counts}"
    yield from (f"  {plain(each)}" for each in diagnosis.looked_at)
    if diagnosis.gaps:
        yield "Not looked at:"
    yield from (f"  {plain(gap.what)}: {plain(gap.reason)}" for gap in diagnosis.gaps)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
