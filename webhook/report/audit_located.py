"""Findings of an audit as findings without a file, for the formats that are made for files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.report.audited import Action
from gpugate.webhook.report.located import Located, Place, Severity, Sort

if TYPE_CHECKING:
    from gpugate.webhook.report.audited import Audited, Finding

NOWHERE: Final = Place("")
_SEVERITIES: Final = {Action.BLOCK: Severity.ERROR, Action.WARN: Severity.WARNING}


def located(audited: Audited, finding: Finding) -> Located:
    """Return a finding with its object; what is changed or recorded is a note."""
    sort = Sort.PATCH if finding.patches else Sort.VIOLATION if finding.policy else Sort.MALFORMED
    return Located(
        sort,
        _SEVERITIES.get(finding.action, Severity.NOTE),
        finding.message,
        NOWHERE,
        policy=finding.policy,
        object=finding.made or audited.object,
        path=finding.path,
        stance=finding.stance,
        why=finding.why,
        hint=finding.hint,
        note=finding.note,
        fix=finding.fix,
        patches=finding.patches,
        template_of=finding.template_of,
    )
