"""One line per finding, as editors and `grep` read it: `FILE:LINE:COLUMN: severity[policy] message`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.report import words
from gpugate.webhook.report.plain import plain
from gpugate.webhook.report.summary import passed_over, summary
from gpugate.webhook.report.view import View, groups, heading, left_out, statistics

if TYPE_CHECKING:
    from gpugate.webhook.report.located import Located, Report, Suppressed


def write(report: Report, view: View | None = None) -> str:
    """Write a report."""
    view = view or View()
    lines: list[str] = []
    grouped, omitted = groups(report.findings, view)
    for group in grouped:
        lines += [heading(group)] if group.heading else []
        lines += [line_of(finding) for finding in group.findings]
    lines += [left_out(omitted)] if omitted else []
    lines += [plain(_suppressed(suppressed)) for suppressed in report.suppressed] if view.suppressed else []
    lines += passed_over(report) if view.skipped else ()
    lines += statistics(report.findings) if view.statistics else ()
    lines += [] if view.quiet else summary(report, view)
    return "".join(f"{line}\n" for line in lines)


def line_of(finding: Located) -> str:
    """Write one finding."""
    return plain(_finding(finding, finding.severity.value))


def _suppressed(suppressed: Suppressed) -> str:
    return f"{_finding(suppressed.finding, 'suppressed')}: {suppressed.by.value}: {suppressed.reason}"


def _finding(finding: Located, head: str) -> str:
    about = f" ({finding.object})" if finding.object else ""
    return f"{finding.location.where}: {head}[{words.code(finding)}] {finding.message}{about}"
