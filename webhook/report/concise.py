"""One line per finding, as editors and `grep` read it: `FILE:LINE:COLUMN: severity[policy] message`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.report import words
from gpugate.webhook.report.plain import plain
from gpugate.webhook.report.summary import passed_over, summary

if TYPE_CHECKING:
    from gpugate.webhook.report.located import Located, Report, Suppressed


def write(
    report: Report,
    *,
    quiet: bool = False,
    seconds: float | None = None,
    suppressed: bool = False,
    skipped: bool = False,
) -> str:
    """Write a report; `quiet` leaves out the summary, `seconds` is how long the run took.

    `suppressed` shows that too, and `skipped` lists the parts of the input that were passed over.
    """
    lines = [plain(_finding(finding, finding.severity.value)) for finding in report.findings]
    lines += [plain(_suppressed(each)) for each in report.suppressed] if suppressed else []
    lines += passed_over(report) if skipped else ()
    lines += [] if quiet else summary(report, seconds)
    return "".join(f"{line}\n" for line in lines)


def _suppressed(each: Suppressed) -> str:
    return f"{_finding(each.finding, 'suppressed')}: {each.by.value}: {each.reason}"


def _finding(finding: Located, head: str) -> str:
    about = f" ({finding.object})" if finding.object else ""
    return f"{finding.place.where}: {head}[{words.code(finding)}] {finding.message}{about}"
