"""An audit as CSV (RFC 4180), one row for each finding."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.tally import code, usd
from gpugate.webhook.report import words
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import Audited, AuditReport

COLUMNS: Final = (
    "action", "namespace", "kind", "name", "apiVersion", "uid", "pods", "gpus", "gpu_models", "usd_per_hour",
    "policy", "mode", "field", "message", "fix", "note",
)  # fmt: skip
# A spreadsheet evaluates a cell with such a beginning as a formula (OWASP, "CSV Injection").
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}",
                   "\N{FULLWIDTH HYPHEN-MINUS}", "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write an audit; an apostrophe precedes texts that a spreadsheet would evaluate."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_MINIMAL)
    writer.writerow(COLUMNS)
    for audited in report.audited:
        writer.writerows(map(cell, row) for row in _rows(audited, presentation))
    return out.getvalue()


def _rows(audited: Audited, presentation: Presentation) -> Iterator[tuple[object, ...]]:
    name, cost = audited.object, usd(audited.allocated)
    gpus = sum(allocated.gpus for allocated in audited.allocated)
    where = (name.namespace, name.kind, name.name, name.api_version, audited.uid, audited.pods)
    allocated = (
        gpus,
        say.gpus_of(audited.allocated) if audited.allocated else "",
        "" if cost is None else round(cost, 4),
    )
    for finding in audited.findings:
        columns = (code(finding), finding.stance.word, finding.location, finding.message)
        yield finding.action.value, *where, *allocated, *columns, "\n".join(words.fixes(finding)), finding.note
    if not audited.findings and presentation.include_passed:
        yield Action.ALLOW.value, *where, *allocated, "", "", "", "", "", ""


def cell(value: object) -> object:
    """Return a value for a cell; an apostrophe precedes texts that a spreadsheet would evaluate."""
    if not isinstance(value, str):
        return value
    text = "\n".join(map(plain, value.split("\n")))
    return f"'{text}" if value.lstrip(" ").startswith(_FORMULA) else text
