"""Takes names out of an audit: of objects, namespaces, users and the cluster, wherever they stand."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from gpugate.policies.sdk.findings import Patch, Patches, Replacement
from gpugate.webhook.audit.pseudonyms import Pseudonyms
from gpugate.webhook.report.audit_comparison import Changed, Comparison

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.webhook.report.audited import Audited, AuditReport, Cost, Finding
    from gpugate.webhook.report.located import ObjectName

_SALT_BYTES = 16


def pseudonyms(report: AuditReport, salt: str | None = None, comparison: Comparison | None = None) -> Pseudonyms:
    """Return pseudonyms for everything that a report names.

    With a salt of one's own the same names have the same pseudonyms in every run, and whoever knows the salt can try
    names; without, they last for this run.
    """
    known = Pseudonyms(secrets.token_bytes(_SALT_BYTES) if salt is None else salt.encode(), _names(report, comparison))
    return known.with_kinds({name.kind for name in _objects(report, comparison)} | set(report.counts))


def anonymize(report: AuditReport, names: Pseudonyms) -> AuditReport:
    """Return a report whose names are pseudonyms: in objects, messages, hints, paths, patches and remarks.

    Kinds, versions, labels and resources of public projects, instance types and numbers stay. Uids are left out.
    """
    return replace(
        report,
        cluster=replace(
            report.cluster, name=names.of(report.cluster.name, "cluster"), user=names.of(report.cluster.user, "user")
        ),
        audited=tuple(_audited(each, names) for each in report.audited),
        not_evaluated=tuple(
            replace(each, what=names.text(each.what), reason=names.text(each.reason)) for each in report.not_evaluated
        ),
        cost=_cost(report.cost, names) if report.cost else None,
        expired=tuple(map(names.text, report.expired)),
        unused=tuple(map(names.text, report.unused)),
        remarks=tuple(map(names.text, report.remarks)),
    )


def anonymize_comparison(comparison: Comparison, names: Pseudonyms) -> Comparison:
    """Return a comparison whose names are pseudonyms."""

    def changed(changes: Iterable[Changed]) -> tuple[Changed, ...]:
        return tuple(Changed(_object(each.object, names), _finding(each.finding, names)) for each in changes)

    return replace(comparison, new=changed(comparison.new), fixed=changed(comparison.fixed))


def _names(report: AuditReport, comparison: Comparison | None) -> Iterator[str]:
    yield from (report.cluster.name, report.cluster.user)
    for name in _objects(report, comparison):
        yield from (name.namespace, name.name, name.name.rstrip("*").rstrip("-"))
    for pool in report.cost.pools if report.cost else ():
        yield pool.node_pool


def _objects(report: AuditReport, comparison: Comparison | None) -> Iterator[ObjectName]:
    for each in report.audited:
        yield each.object
        yield from (finding.made for finding in each.findings if finding.made)
    if report.cost:
        yield from (each.object for each in report.cost.unbounded)
        yield from (each.object for each in report.cost.wasted)
    for changed in (*comparison.new, *comparison.fixed) if comparison else ():
        yield changed.object


def _object(name: ObjectName, names: Pseudonyms) -> ObjectName:
    return replace(name, namespace=names.of(name.namespace), name=names.of(name.name))


def _audited(audited: Audited, names: Pseudonyms) -> Audited:
    return replace(
        audited,
        object=_object(audited.object, names),
        uid="",
        findings=tuple(_finding(finding, names) for finding in audited.findings),
        skipped={policy: names.text(reason) for policy, reason in audited.skipped.items()},
    )


def _finding(finding: Finding, names: Pseudonyms) -> Finding:
    return replace(
        finding,
        path=names.text(finding.path),
        made=_object(finding.made, names) if finding.made else None,
        message=names.text(finding.message),
        hint=names.text(finding.hint),
        note=names.text(finding.note),
        fix=_fix(finding.fix, names),
        patches=tuple(_patch(patch, names) for patch in finding.patches),
    )


def _fix(fix: Patches | Replacement | None, names: Pseudonyms) -> Patches | Replacement | None:
    if isinstance(fix, Patches):
        return replace(fix, patches=tuple(_patch(patch, names) for patch in fix.patches))
    if isinstance(fix, Replacement):
        objects = (names.value(obj) for obj in fix.objects)
        return replace(fix, objects=tuple(obj for obj in objects if isinstance(obj, dict)))
    return None


def _patch(patch: Patch, names: Pseudonyms) -> Patch:
    path = tuple(names.text(part) if isinstance(part, str) else part for part in patch.path)
    return replace(patch, path=path, value=names.value(patch.value), reason=names.text(patch.reason))


def _cost(cost: Cost, names: Pseudonyms) -> Cost:
    return replace(
        cost,
        prices=names.text(cost.prices),
        unbounded=tuple(
            replace(each, object=_object(each.object, names), reason=names.text(each.reason)) for each in cost.unbounded
        ),
        wasted=tuple(
            replace(each, object=_object(each.object, names), reason=names.text(each.reason)) for each in cost.wasted
        ),
        pools=tuple(replace(pool, node_pool=names.of(pool.node_pool)) for pool in cost.pools),
    )
