"""Read the JSON document of an audit, for `--compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk.findings import Patch, Patches, Replacement, Stance
from gpugate.webhook.audit.formats import schema as documents
from gpugate.webhook.audit.model import (
    Action,
    AllocatedGpus,
    Audited,
    AuditReport,
    Cluster,
    Cost,
    Finding,
    NotEvaluated,
    PoolUse,
    Unbounded,
    Wasted,
)
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class AuditDocumentError(GpugateError):
    """A text is not an audit, or one of an unsupported version."""


def read(text: str | bytes) -> AuditReport:
    """Read an audit, with its objects without findings only if the document contains them.

    Raises:
        AuditDocumentError: the text is invalid; the message names the location in the text, but not the file.
    """
    try:
        document = msgspec.json.decode(text, type=documents.AuditDocument)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise AuditDocumentError(
            f"not an audit in the format {documents.SCHEMA}: {error}; write one with -o json=FILE"
        ) from None
    return AuditReport(
        cluster=_same(document.cluster, Cluster),
        time=document.time,
        generation=document.generation,
        target=document.target,
        audited=tuple(map(_audited, document.objects)),
        counts=document.counts,
        not_evaluated=tuple(_same(each, NotEvaluated) for each in document.not_evaluated),
        coverage=document.coverage,
        cost=_cost(document.cost) if document.cost else None,
        expired=document.expired,
        unused=document.unused,
        remarks=document.remarks,
    )


def _same(document: msgspec.Struct, make: Callable[..., T]) -> T:
    """Create a record from the fields of the same names; only `object` is a record itself."""
    fields = {name: getattr(document, name) for name in document.__struct_fields__}
    if "object" in fields:
        fields["object"] = _name(fields["object"])
    return make(**fields)


def _name(name: documents.NameDocument) -> ObjectName:
    return ObjectName(name.api_version, name.kind, name.namespace, name.name)


def _audited(audited: documents.ObjectDocument) -> Audited:
    return Audited(
        object=_name(audited.object),
        uid=audited.uid,
        pods=audited.pods,
        allocated=tuple(_same(allocated, AllocatedGpus) for allocated in audited.allocated),
        findings=tuple(map(_finding, audited.findings)),
        skipped=audited.skipped,
    )


def _finding(finding: documents.FindingDocument) -> Finding:
    return Finding(
        policy=finding.policy,
        path=finding.path,
        message=finding.message,
        stance=Stance[finding.mode.upper()],
        action=Action(finding.action),
        why=finding.why,
        hint=finding.hint,
        note=finding.note,
        fix=_fix(finding.fix) if finding.fix else None,
        patches=tuple(_same(patch, Patch) for patch in finding.patches),
        template_of=finding.template_of,
        dependent=_name(finding.dependent) if finding.dependent else None,
        related=tuple(map(_name, finding.related)),
    )


def _fix(fix: documents.FixDocument) -> Patches | Replacement:
    if fix.objects is not None:
        return Replacement(fix.objects, fix.safe)
    return Patches(tuple(_same(patch, Patch) for patch in fix.patches or ()), fix.safe)


def _cost(cost: documents.CostDocument) -> Cost:
    return Cost(
        prices=cost.prices,
        at_risk=cost.at_risk,
        allocated=cost.allocated,
        idle=cost.idle,
        unbounded=tuple(_same(each, Unbounded) for each in cost.unbounded),
        wasted=tuple(_same(each, Wasted) for each in cost.wasted),
        pools=tuple(_same(each, PoolUse) for each in cost.pools),
        unpriced_gpus=cost.unpriced_gpus,
    )
