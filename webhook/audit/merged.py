"""The audits of many clusters in one report: each cluster with its result, and the totals of those that were audited."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from gpugate import __version__
from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.model import Action, AuditReport, Summary, Usd
from gpugate.webhook.report.plain import BOLD, CYAN, RED, YELLOW, aligned, plain, plain_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.webhook.audit.model import Audited
    from gpugate.webhook.report.plain import Paint

SCHEMA: Final = "gpugate.dev/audit-clusters/v1"
Result: TypeAlias = Literal["complete", "partial", "failed", "timeout", "repeated"]
_AUDITED: Final = ("complete", "partial")


class ClusterAudit(msgspec.Struct, frozen=True):
    """The audit of one cluster."""

    context: Annotated[str, Meta(description="context of the kubeconfig")]
    result: Annotated[
        Result,
        Meta(
            description="complete; partial: some objects were not evaluated; failed: no audit; timeout: not finished in time; "
            "repeated: another context is of the same cluster, which counts once"
        ),
    ]
    reason: Annotated[str, Meta(description="why the result is not complete")] = ""
    report: Annotated[AuditReport | None, Meta(description="null if there is no audit")] = None


class Totals(msgspec.Struct, frozen=True):
    """Sums over the audited clusters, each cluster once."""

    clusters: Annotated[int, Meta(description="number of audited clusters")]
    objects: Summary
    spend: Annotated[Usd | None, Meta(description="null without any cost")] = None
    at_risk: Annotated[Usd | None, Meta(description="null without any cost")] = None


class ClustersReport(msgspec.Struct, frozen=True, tag_field="schema", tag=SCHEMA):
    """Audits of many clusters by gpugate, at the same time."""

    gpugate: Annotated[str, Meta(description="version of gpugate that wrote the document")]
    time: Annotated[dt.datetime, Meta(tz=True, description="the start")]
    contexts: Annotated[tuple[str, ...], Meta(description="patterns of --contexts")]
    totals: Totals
    clusters: tuple[ClusterAudit, ...]


def merge(audits: Sequence[ClusterAudit], patterns: Sequence[str], time: dt.datetime) -> ClustersReport:
    """Merge the audits of clusters; a cluster that several contexts reach counts once."""
    clusters = tuple(_once(audits))
    reports = [cluster.report for cluster in clusters if cluster.result in _AUDITED and cluster.report is not None]
    summary = Summary(**{action.value: sum(getattr(r.summary, action.value) for r in reports) for action in Action})
    costs = [report.cost for report in reports if report.cost is not None]
    spend = sum((cost.spend for cost in costs), 0.0) if costs else None
    at_risk = sum((cost.at_risk for cost in costs), 0.0) if costs else None
    totals = Totals(len(reports), summary, spend, at_risk)
    return ClustersReport(__version__, time, tuple(patterns), totals, clusters)


def _once(audits: Iterable[ClusterAudit]) -> Iterator[ClusterAudit]:
    by_uid: dict[str, str] = {}
    for audit in audits:
        uid = audit.report.cluster.uid if audit.report else ""
        first = by_uid.setdefault(uid, audit.context) if uid else audit.context
        if first == audit.context:
            yield audit
        else:
            yield ClusterAudit(audit.context, "repeated", f"the same cluster as {first}, where it counts")


def write_json(report: ClustersReport) -> str:
    """Write the report as JSON, indented."""
    return plain_json(msgspec.json.format(msgspec.json.encode(report), indent=2).decode()) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(ClustersReport),
    }


_HEADER: Final = ("CLUSTER", "RESULT", "DENY", "MUTATE", "WARN", "COVERAGE", "$/HOUR", "$/HOUR AT RISK")
_COLOURS: Final = {2: (RED, BOLD), 3: (CYAN,), 4: (YELLOW,)}


def write_text(report: ClustersReport, paint: Paint, top: int) -> str:
    """Write a line for each cluster, what was not audited and why, and the worst `top` objects of all; 0 is all."""
    audited = report.totals.clusters
    of = f"{audited:,} of {say.plural(len(report.clusters), 'cluster')}"
    blocks: list[Iterable[str]] = [
        [plain(f"Audited {of} ({', '.join(report.contexts)}) at {report.time:%Y-%m-%d %H:%M %Z}")],
        aligned(
            _HEADER, [*map(_row, report.clusters), _sum(report.totals)], paint, right=set(range(2, 8)), colours=_COLOURS
        ),
        _gaps(report, paint),
        _worst(report, paint, top),
    ]
    return "\n".join("".join(f"{line}\n" for line in block) for block in map(list, blocks) if block)


def _row(cluster: ClusterAudit) -> tuple[str, ...]:
    report = cluster.report
    if report is None:
        return (cluster.context, cluster.result, *[say.UNKNOWN] * 6)
    counts = (f"{getattr(report.summary, action):,}" for action in ("deny", "mutate", "warn"))
    money = (say.money(report.cost.spend), say.money(report.cost.at_risk)) if report.cost else [say.UNKNOWN] * 2
    return (cluster.context, cluster.result, *counts, say.percent(report.coverage), *money)


def _sum(totals: Totals) -> tuple[str, ...]:
    objects = totals.objects
    counts = (f"{count:,}" for count in (objects.deny, objects.mutate, objects.warn))
    return ("all", "", *counts, "", say.money(totals.spend), say.money(totals.at_risk))


def _gaps(report: ClustersReport, paint: Paint) -> Iterator[str]:
    incomplete = [cluster for cluster in report.clusters if cluster.result != "complete"]
    if incomplete:
        yield paint("INCOMPLETE", BOLD)
    for cluster in incomplete:
        yield plain(f"  {cluster.context}: {cluster.reason}")


def _worst(report: ClustersReport, paint: Paint, top: int) -> Iterator[str]:
    from gpugate.webhook.audit.scan import worst_first  # noqa: PLC0415 -- the schema of the report needs no audit

    owner: dict[int, str] = {}
    objects: list[Audited] = []
    for cluster in report.clusters:
        for audited in cluster.report.audited if cluster.report else ():
            if audited.findings:
                owner[id(audited)] = cluster.context
                objects.append(audited)
    listed = worst_first(objects)[: top or None]
    if not listed:
        return
    rows = []
    for audited in listed:
        first, *others = say.policies(audited)
        policies = f"{first} +{len(others)}" if others else first
        usd = say.price(audited, {}, say.Amounts())
        rows.append((owner[id(audited)], str(audited.object), audited.action.value, policies, usd))
    header = ("CLUSTER", "WORST OBJECTS", "ACTION", "POLICIES", "$/HOUR")
    yield from aligned(header, rows, paint, right={4}, colours={1: (BOLD,)})
    if len(objects) > len(listed):
        yield f"and {len(objects) - len(listed):,} more: --top 0, or -o json"
