"""Findings for a person at a terminal: a frame of the file with a caret, the cause, the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.report import words
from gpugate.webhook.report.colour import BLUE, BOLD, CYAN, DIM, RED, YELLOW, Paint
from gpugate.webhook.report.located import Located, Place, Report, Severity
from gpugate.webhook.report.plain import plain
from gpugate.webhook.report.summary import summary

if TYPE_CHECKING:
    from collections.abc import Iterator

# A line of minified JSON is not shown whole.
_WIDTH = 240
_COLOURS = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.NOTE: CYAN}


def write(report: Report, paint: Paint | None = None, *, quiet: bool = False, seconds: float | None = None) -> str:
    """Write a report; `quiet` leaves out the summary, `seconds` is how long the run took."""
    paint = paint or Paint()
    blocks = ["\n".join(_finding(finding, paint)) for finding in report.findings]
    if not quiet:
        blocks.append("\n".join(summary(report, seconds)))
    return "".join(f"{block}\n\n" for block in blocks[:-1]) + (f"{blocks[-1]}\n" if blocks else "")


def _finding(finding: Located, paint: Paint) -> Iterator[str]:
    colour = _COLOURS[finding.severity]
    head = f"{finding.severity.value}[{words.code(finding)}]"
    yield f"{paint(head, BOLD, colour)}: {paint(plain(finding.message), BOLD)}"
    place = finding.place
    margin = " " * len(str(place.first_line + len(place.excerpt) - 1)) if place.excerpt else " "
    where = f"{place.file}:{place.line}:{place.column}" if place.line else place.file
    shown = f"   {finding.object}" if finding.object else ""
    yield f"{margin}{paint('-->', BLUE)} {plain(where)}{paint(plain(shown), DIM)}"
    if place.excerpt:
        yield from _frame(place, margin, colour, paint)
    for label, text in _details(finding):
        yield f"{margin} {paint('=', BLUE)} {label}{plain(text)}"


def _frame(place: Place, margin: str, colour: int, paint: Paint) -> Iterator[str]:
    bar = paint("|", BLUE)
    yield f"{margin} {bar}"
    for number, line in enumerate(place.excerpt, place.first_line):
        cut = line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."
        yield f"{paint(f'{number:>{len(margin)}}', BLUE)} {bar} {plain(cut)}".rstrip()
        if number == place.line and place.end <= _WIDTH:
            caret = "^" * max(1, place.end - place.column)
            yield f"{margin} {bar} {' ' * (place.column - 1)}{paint(caret, colour)}"
    yield f"{margin} {bar}"


def _details(finding: Located) -> Iterator[tuple[str, str]]:
    if finding.path:
        yield "field: ", finding.path
    if finding.why:
        yield "why: ", finding.why
    if finding.note:
        yield "note: ", finding.note
    for index, line in enumerate(words.fixes(finding)):
        yield "     " if index else "fix: ", line
    consequence = words.at_admission(finding)
    if consequence:
        yield "at admission: ", consequence
    if finding.policy:
        yield "docs: ", f"gpugate explain {finding.policy}"
