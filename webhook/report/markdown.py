"""A report in Markdown, for summaries and comments of GitHub and GitLab."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.webhook.report import words
from gpugate.webhook.report.located import Located, Report, Severity
from gpugate.webhook.report.plain import plain
from gpugate.webhook.report.summary import summary
from gpugate.webhook.report.view import View

if TYPE_CHECKING:
    from collections.abc import Iterator

# A comment has at most 65,536 characters and a step's summary 1 MiB; these lines stay far below both.
_MOST_ROWS: Final = 200
_ORDER: Final = list(Severity)
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|#~&])")
# What may begin a mention or a reference. Both are found in the rendered text (`MentionFilter` of html-pipeline), where a
# backslash is gone; a space without width ends them there.
_REFERENCE: Final = re.compile("[@#]")
_NO_WIDTH: Final = "&#8203;"


def write(report: Report, seconds: float | None = None) -> str:
    """Write a report: a table with the most severe findings first, and their fixes."""
    return "".join(f"{line}\n" for line in _lines(report, seconds))


def _lines(report: Report, seconds: float | None) -> Iterator[str]:
    counts, *others = summary(report, View(seconds=seconds))
    yield from ("### gpugate", "", counts)
    findings = sorted(report.findings, key=lambda finding: _ORDER.index(finding.severity))
    if findings:
        yield from ("", "| | where | what |", "|---|---|---|")
        yield from (_row(finding) for finding in findings[:_MOST_ROWS])
    if len(findings) > _MOST_ROWS:
        yield from ("", f"and {len(findings) - _MOST_ROWS:,} more")
    fixes = list(dict.fromkeys(line for finding in findings[:_MOST_ROWS] for line in _fix(finding)))
    if fixes:
        yield from ("", "<details><summary>How to fix them</summary>", "", *fixes, "", "</details>")
    if others:
        yield from ("", *(f"- {escaped(line.strip())}" for line in others))


def _row(finding: Located) -> str:
    location = finding.location
    where = (
        f"{escaped(location.file)}:{location.line}"
        if location.line and not location.rendered
        else escaped(location.where)
    )
    about = f"<br>{escaped(str(finding.object))}" if finding.object else ""
    return f"| {finding.severity.value} | {where}{about} | {escaped(finding.message)} (`{words.code(finding)}`) |"


def _fix(finding: Located) -> Iterator[str]:
    lines = [plain(line) for line in words.fixes(finding)]
    if lines:
        location = finding.location
        where = escaped(location.where if location.rendered else f"{location.file}:{location.line}")
        yield f"- {where}, `{words.code(finding)}`: {escaped(lines[0])}"
    for line in lines[1:]:
        yield f"      {line}"


def escaped(text: str) -> str:
    """Escape all syntax of Markdown and HTML, mentions, and references to issues."""
    return _REFERENCE.sub(rf"\g<0>{_NO_WIDTH}", _MARKUP.sub(r"\\\1", plain(text)))
