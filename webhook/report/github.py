"""Workflow commands for GitHub Actions, which shows them next to the lines of a pull request.

GitHub shows only the first few of a step, so the most severe come first; `-o markdown` contains all. Source: GitHub's
documentation, "Workflow commands for GitHub Actions"; the escapes are those of `@actions/core`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.report import words
from gpugate.webhook.report.fingerprints import relative
from gpugate.webhook.report.located import Located, Report, Severity
from gpugate.webhook.report.plain import plain
from gpugate.webhook.report.summary import summary

if TYPE_CHECKING:
    from pathlib import Path

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_ORDER = list(_COMMANDS)


def write(report: Report, root: Path) -> str:
    """Write a report; paths are relative to `root`, the top of the working copy."""
    worst_first = sorted(report.findings, key=lambda finding: _ORDER.index(finding.severity))
    # The other lines of the summary quote files, and the runner would execute a quoted line that begins with `::`.
    counts = next(summary(report))
    return "".join(f"{line}\n" for line in [*(_command(finding, root) for finding in worst_first), counts])


def _command(finding: Located, root: Path) -> str:
    location = finding.location
    properties = {"file": relative(location.file, root)}
    if location.line:
        properties |= {"line": str(location.line), "endLine": str(location.line)}
        properties |= {"col": str(location.column), "endColumn": str(location.end)}
    properties["title"] = words.code(finding)
    about = f" ({finding.object})" if finding.object else ""
    fixes = [f"fix: {line}" for line in words.fixes(finding)][:1]
    text = "\n".join(plain(line) for line in [f"{words.message(finding)}{about}", *fixes])
    named = ",".join(f"{key}={_escaped(plain(value), ':,')}" for key, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {named}::{_escaped(text)}"


def _escaped(text: str, further: str = "") -> str:
    for character in f"%\r\n{further}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text
