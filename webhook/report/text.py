"""Findings for the terminal: a frame of the file with a caret, the cause and the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.report import words
from gpugate.webhook.report.concise import line_of
from gpugate.webhook.report.located import Located, Report, Severity, Suppressed
from gpugate.webhook.report.plain import BLUE, BOLD, CYAN, DIM, RED, YELLOW, Paint, plain
from gpugate.webhook.report.summary import passed_over, summary
from gpugate.webhook.report.view import View, groups, heading, left_out, statistics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.report.located import Location

# The most characters of a line that are shown, for minified JSON.
_WIDTH: Final = 240
# The most further locations of one finding.
_SHOWN: Final = 3


def where(location: Location) -> str:
    """Write file, line and column as compilers do."""
    return location.where


def frame_margin(location: Location) -> str:
    """Return as many spaces as the line numbers are wide."""
    return " " * len(str(location.first_line + len(location.excerpt) - 1)) if location.excerpt else " "


def frame(location: Location, colour: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of a frame; none if the line is unknown."""
    if not location.excerpt:
        return
    bar, left = paint("|", BLUE), frame_margin(location)
    yield f"{left} {bar}"
    for number, line in enumerate(location.excerpt, location.first_line):
        cut = line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."
        yield f"{paint(f'{number:>{len(left)}}', BLUE)} {bar} {plain(cut)}".rstrip()
        if number == (location.rendered or location.line) and location.end <= _WIDTH:
            start, end = (
                (len(cut) - len(cut.lstrip()), len(cut))
                if location.rendered
                else (location.column - 1, location.end - 1)
            )
            yield f"{left} {bar} {' ' * start}{paint('^' * max(1, end - start), colour)}"
    yield f"{left} {bar}"


_COLOURS = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.NOTE: CYAN}


def write(report: Report, paint: Paint | None = None, view: View | None = None) -> str:
    """Write a report; `paint` colours it."""
    paint, view = paint or Paint(), view or View()
    blocks: list[str] = []
    grouped, omitted = groups(report.findings, view)
    for group in grouped:
        blocks += [paint(heading(group), BOLD)] if group.heading else []
        in_full = [f for f in group.findings if not view.brief or f.severity is Severity.ERROR]
        blocks += ["\n".join(_finding(finding, paint, view)) for finding in in_full]
        in_a_line = [line_of(f) for f in group.findings if view.brief and f.severity is not Severity.ERROR]
        blocks += ["\n".join(in_a_line)] if in_a_line else []
    blocks += [left_out(omitted)] if omitted else []
    if view.suppressed:
        blocks += ["\n".join(_suppressed(suppressed, paint)) for suppressed in report.suppressed]
    if view.skipped and report.passed:
        blocks.append("\n".join(passed_over(report)))
    if view.statistics and report.findings:
        blocks.append("\n".join(statistics(report.findings)))
    if not view.quiet:
        blocks.append("\n".join(summary(report, view)))
    return "".join(f"{block}\n\n" for block in blocks[:-1]) + (f"{blocks[-1]}\n" if blocks else "")


def _finding(finding: Located, paint: Paint, view: View) -> Iterator[str]:
    colour = _COLOURS[finding.severity]
    head = f"{finding.severity.value}[{words.code(finding)}]"
    yield f"{paint(head, BOLD, colour)}: {paint(plain(finding.message), BOLD)}"
    margin = frame_margin(finding.location)
    subject = f"   {finding.object}" if finding.object else ""
    yield f"{margin}{paint('-->', BLUE)} {plain(where(finding.location))}{paint(plain(subject), DIM)}"
    yield from frame(finding.location, colour, paint)
    for label, text in _details(finding, view):
        yield f"{margin} {paint('=', BLUE)} {label}{plain(text)}"


def _suppressed(suppressed: Suppressed, paint: Paint) -> Iterator[str]:
    finding = suppressed.finding
    yield paint(f"suppressed[{words.code(finding)}]: {plain(finding.message)}", DIM)
    subject = f"   {finding.object}" if finding.object else ""
    yield f" {paint('-->', BLUE)} {plain(where(finding.location))}{paint(plain(subject), DIM)}"
    yield f"  {paint('=', BLUE)} {suppressed.by.value}: {plain(suppressed.reason)}"


def _related(related: tuple[Located, ...], most: int) -> Iterator[tuple[str, str]]:
    """Yield further locations with the same cause, at most this number."""
    for index, finding in enumerate(related[:most]):
        yield "     " if index else "and: ", f"{where(finding.location)}   {finding.object or ''}".rstrip()
    if len(related) > most:
        yield "     ", f"and {len(related) - most:,} more; -v lists them"


def _details(finding: Located, view: View) -> Iterator[tuple[str, str]]:
    if finding.path:
        yield "field: ", finding.path
    yield from _related(finding.related, len(finding.related) if view.verbose else _SHOWN)
    if finding.location.variants:
        yield "rendered with: ", "; ".join(finding.location.variants)
    if finding.why:
        yield "why: ", finding.why
    if finding.note:
        yield "note: ", finding.note
    if finding.location.unrendered:
        yield "note: ", words.unrendered(finding.location)
    for index, line in enumerate(words.fixes(finding)):
        yield "     " if index else "fix: ", line
    if finding.convention:
        yield "severity: ", words.BY_CONVENTION
    consequence = words.at_admission(finding)
    if consequence:
        yield "at admission: ", consequence
    address = words.page(finding, view.docs)
    if address or finding.policy:
        yield "docs: ", address or f"gpugate explain {finding.policy}"
