"""An audit as SARIF 2.1.0. Locations are logical, because stored objects have no file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.formats.presentation import located
from gpugate.webhook.report import sarif
from gpugate.webhook.report.located import Report

if TYPE_CHECKING:
    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write an audit; what was not evaluated is a notification of the run."""
    findings = [located(audited, finding) for audited in report.audited for finding in audited.findings]
    gaps = say.not_evaluated(report)
    return sarif.log(Report(tuple(findings)), presentation.policies, Path(), "audit", gaps, docs=presentation.docs)
