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
    """A problem of an installation.

    Attributes:
        severity: an error needs action now, a note needs none.
        code: the stable code of the problem, such as `ca-bundle-expired`.
        message: what is wrong.
        where: the object or address.
        remedy: how to fix it, with a command if there is one.
    """

    severity: Severity
    code: str
    message: str
    where: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A check that was not made, and why; `applies` is false if the check does not apply."""

    subject: str
    reason: str
    applies: bool = True


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of all checks.

    Attributes:
        problems: the problems, worst first.
        checked: the subject of each check that was made.
        gaps: the checks that were not made.
        server: the version of the API server.
    """

    problems: tuple[Problem, ...]
    checked: tuple[str, ...]
    gaps: tuple[Gap, ...] = ()
    server: str = ""

    @property
    def exit_code(self) -> int:
        """1 with at least one error; else 4 if a check could not be made; else 0."""
        if self.count(Severity.ERROR):
            return BROKEN
        return INCOMPLETE if any(gap.applies for gap in self.gaps) else HEALTHY

    def count(self, severity: Severity) -> int:
        """Return the number of problems with a severity."""
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
                "message": problem.message,
                "location": problem.where,
                "fix": problem.remedy,
            }
            for problem in diagnosis.problems
        ],
        "checked": list(diagnosis.checked),
        "not_checked": [{"what": gap.subject, "reason": gap.reason, "applies": gap.applies} for gap in diagnosis.gaps],
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
    yield f"{paint(head, BOLD, _COLOURS[problem.severity])}: {paint(plain(problem.message), BOLD)}"
    yield f" {paint('-->', BLUE)} {plain(problem.where)}"
    yield f"  {paint('=', BLUE)} fix: {plain(problem.remedy)}"


def _summary(diagnosis: Diagnosis) -> Iterator[str]:
    counts = ", ".join(_count(diagnosis.count(severity), severity.value) for severity in Severity)
    server = f" of a Kubernetes {plain(diagnosis.server)} cluster" if diagnosis.server else ""
    yield f"Checked {_count(len(diagnosis.checked), 'part')} of the installation{server}: {counts}"
    yield from (f"  {plain(check)}" for check in diagnosis.checked)
    if diagnosis.gaps:
        yield "Not checked:"
    yield from (f"  {plain(gap.subject)}: {plain(gap.reason)}" for gap in diagnosis.gaps)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
