"""An audit as JSON, `gpugate.dev/audit/v1`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gpugate import __version__
from gpugate.policies.sdk.findings import Patch, Patches, Replacement, Stance
from gpugate.webhook.audit.formats import schema as documents
from gpugate.webhook.audit.model import Action, Audited, AuditReport, Finding
from gpugate.webhook.audit.tally import actions
from gpugate.webhook.report.plain import plain_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.report.located import ObjectName

_MODES: Final[Mapping[Stance, documents.ModeName]] = {
    Stance.OFF: "off",
    Stance.AUDIT: "audit",
    Stance.WARN: "warn",
    Stance.ENFORCE: "enforce",
}


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write an audit, indented."""
    return plain_json(msgspec.json.format(encode(report, presentation), indent=2).decode()) + "\n"


def encode(report: AuditReport, presentation: Presentation) -> bytes:
    """Write an audit on one line."""
    return msgspec.json.encode(document(report, presentation))


def document(report: AuditReport, presentation: Presentation) -> documents.AuditDocument:
    """Return the document of an audit."""
    shown = [o for o in report.audited if presentation.include_passed or o.action is not Action.ALLOW]
    cost = report.cost
    return documents.AuditDocument(
        gpugate=__version__,
        cluster=msgspec.convert(report.cluster, documents.ClusterDocument, from_attributes=True),
        time=report.time,
        generation=report.generation,
        target=report.target,
        coverage=report.coverage,
        summary=documents.SummaryDocument(**{action.value: count for action, count in actions(report).items()}),
        counts=dict(report.counts),
        objects=tuple(map(_object, shown)),
        not_evaluated=tuple(
            documents.NotEvaluatedDocument(each.what, each.reason, each.objects) for each in report.not_evaluated
        ),
        cost=msgspec.convert(cost, documents.CostDocument, from_attributes=True) if cost else None,
        expired=report.expired,
        unused=report.unused,
        remarks=report.remarks,
        anonymized=presentation.anonymized,
    )


def _object(audited: Audited) -> documents.ObjectDocument:
    return documents.ObjectDocument(
        object=_name(audited.object),
        action=audited.action.value,
        uid=audited.uid,
        pods=audited.pods,
        allocated=tuple(
            msgspec.convert(allocated, documents.AllocatedDocument, from_attributes=True)
            for allocated in audited.allocated
        ),
        findings=tuple(map(_finding, audited.findings)),
        skipped=dict(audited.skipped),
    )


def _name(name: ObjectName) -> documents.NameDocument:
    return documents.NameDocument(name.api_version, name.kind, name.namespace, name.name)


def _finding(finding: Finding) -> documents.FindingDocument:
    return documents.FindingDocument(
        policy=finding.policy,
        path=finding.path,
        message=finding.message,
        mode=_MODES[finding.stance],
        action=finding.action.value,
        why=finding.why,
        hint=finding.hint,
        note=finding.note,
        fix=_fix(finding.fix),
        patches=tuple(map(_patch, finding.patches)),
        template_of=finding.template_of,
        dependent=_name(finding.dependent) if finding.dependent else None,
        related=tuple(map(_name, finding.related)),
    )


def _fix(fix: Patches | Replacement | None) -> documents.FixDocument | None:
    if isinstance(fix, Patches):
        return documents.FixDocument(fix.safe, patches=tuple(map(_patch, fix.patches)))
    return documents.FixDocument(fix.safe, objects=fix.objects) if fix else None


def _patch(patch: Patch) -> documents.PatchDocument:
    return documents.PatchDocument(patch.op, patch.path, patch.value, patch.reason)
