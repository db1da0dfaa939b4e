"""One line per finding, as editors and `grep` read it: `FILE:LINE:COLUMN: severity[policy] message`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.report import words
from gpugate.webhook.report.plain import plain
from gpugate.webhook.report.summary import summary

if TYPE_CHECKING:
    from gpugate.webhook.report.located import Located, Report


def write(report: Report, *, quiet: bool = False, seconds: float | None = None) -> str:
    """Write a report; `quiet` leaves out the summary, `seconds` is how long the run took."""
    lines = [plain(_finding(finding)) for finding in report.findings]
    lines += [] if quiet else summary(report, seconds)
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Located) -> str:
    place = finding.place
    where = f"{place.file}:{place.line}:{place.column}" if place.line else place.file
    about = f" ({finding.object})" if finding.object else ""
    return f"{where}: {finding.severity.value}[{words.code(finding)}] {finding.message}{about}"
