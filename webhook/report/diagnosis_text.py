"""A diagnosis for a person at a terminal: each problem with its place and remedy, then what was looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.report.colour import BLUE, BOLD, CYAN, RED, YELLOW, Paint
from gpugate.webhook.report.located import Severity
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.report.diagnosis import Diagnosis, Problem

_COLOURS: Final = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.NOTE: CYAN}


def write(diagnosis: Diagnosis, paint: Paint | None = None) -> str:
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
