"""An audit for a wide terminal: one line for each finding, with its field, message and fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.formats.text import changes, cost, gaps, group_table, head, pending, pool_table, trend, waste
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.tally import code
from gpugate.webhook.report import words
from gpugate.webhook.report.plain import BOLD, aligned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport

_HEADER: Final = ("POLICY", "FIELD", "FINDING", "FIX")


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write an audit with all findings."""
    by = presentation.group_by or "namespace"
    groups = pool_table(report, presentation) if by == "pool" else group_table(report, presentation, by)
    parts = (
        head(report, presentation),
        groups,
        cost(report, presentation),
        waste(report, presentation, evidence=True),
        _findings(report, presentation),
        pending(report, presentation),
    )
    blocks = map(list, (*parts, trend(presentation), changes(presentation), gaps(report, presentation)))
    return "\n".join("".join(f"{line}\n" for line in block) for block in blocks if block)


def _findings(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    amount = presentation.amount
    growing = say.growth(report, amount)
    rows = []
    for audited in report.audited:
        shared = (
            str(audited.object),
            str(audited.pods),
            say.gpus_of(audited.allocated),
            say.price(audited, growing, amount),
        )
        rows += [
            (
                finding.action.value,
                *shared,
                code(finding),
                finding.location,
                finding.message,
                " / ".join(words.fixes(finding)),
            )
            for finding in audited.findings
        ]
        if not audited.findings and presentation.include_passed:
            rows.append((Action.ALLOW.value, *shared, "", "", "", ""))
    if rows:
        yield from aligned(
            ("ACTION", "OBJECT", "PODS", "GPUS", f"{amount.symbol}/HOUR", *_HEADER),
            rows,
            presentation.paint,
            right={2, 3, 4},
            colours={1: (BOLD,)},
        )
