"""Audits a source: reads every object once, judges it, and adds up what was found by top owner."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpugate.policies.engine import enforcement
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.ruleset import Needs
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request, pod_templates
from gpugate.webhook.audit.as_created import as_created, pod_as_created
from gpugate.webhook.audit.content import digest
from gpugate.webhook.audit.coverage import Coverage
from gpugate.webhook.audit.facts import AuditFacts
from gpugate.webhook.audit.lineage import Lineage
from gpugate.webhook.audit.owners import entry
from gpugate.webhook.audit.pod_scan import PodScan
from gpugate.webhook.audit.reading import Reading
from gpugate.webhook.audit.records import Records
from gpugate.webhook.audit.sources.source import NotReadError
from gpugate.webhook.audit.stock import Stock
from gpugate.webhook.audit.tools import Tools
from gpugate.webhook.audit.verdicts import Judging, creation
from gpugate.webhook.cluster.discovery import resource_name
from gpugate.webhook.generate.audited_resources import audited_resources
from gpugate.webhook.report.audited import Action, Audited, AuditReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.audit.inventory import Inventory
    from gpugate.webhook.audit.options import Options
    from gpugate.webhook.audit.packed import Packed
    from gpugate.webhook.audit.sources.source import Object, Source
    from gpugate.webhook.generate.audited_resources import AuditedResource

_POD = GroupVersionKind("", "v1", "Pod")
_ORDER = list(Action)


@dataclass(frozen=True, slots=True)
class Scan:
    """The report, without costs, and what these are reckoned from."""

    report: AuditReport
    inventory: Inventory


def scan(source: Source, ruleset: Ruleset, options: Options) -> Scan:
    """Audit a source.

    Pods come last and are streamed; everything else is kept packed until all facts are known, because a verdict may
    hang on any of them.

    Raises:
        CallError: a cluster cannot be reached at all.
    """
    today = options.time.astimezone(dt.UTC).date()
    tools = _tools(source, ruleset, options, today)
    reading = Reading(source, tools)
    *resources, pods = audited_resources(ruleset)
    for resource in resources:
        reading.read(resource)
    _judge_all(tools, reading.waiting)
    _judge_pods(tools, reading, source, pods)
    _judge_all(tools, reading.of_pods)
    return Scan(
        _report(source, tools, reading, options, today),
        tools.stock.inventory(
            nodes_known="nodes" not in reading.unread,
            pods_known="pods" not in reading.unread,
        ),
    )


def worst_first(audited: Iterable[Audited]) -> tuple[Audited, ...]:
    """Sort objects by what would become of them, then by the cost of the GPUs that they hold, then by name."""

    def place(each: Audited) -> tuple[int, float, float, str, str, str]:
        usd = sum(held.usd_per_hour or 0 for held in each.held)
        name = each.object
        gpus = sum(held.gpus for held in each.held)
        return _ORDER.index(each.action), -usd, -gpus, name.namespace, name.kind, name.name

    return tuple(sorted(audited, key=place))


def _tools(source: Source, ruleset: Ruleset, options: Options, today: dt.date) -> Tools:
    facts = AuditFacts(Needs(ruleset.rules, CLAIM_NEEDS))
    excluded = options.selection.excluded | frozenset(ruleset.config.excluded_namespaces)
    labels = options.selection.labels is not None
    return Tools(
        ruleset=ruleset,
        facts=facts,
        lineage=Lineage(source, labels=labels),
        records=Records(replace(options.selection, excluded=excluded)),
        judging=Judging(ruleset, facts, today),
        stock=Stock(ruleset, facts),
        coverage=Coverage(),
        labels=labels,
        resources={(r.kind.group, r.kind.name): resource_name(r.kind) for r in audited_resources(ruleset)},
    )


def _judge_all(tools: Tools, waiting: Packed) -> None:
    for stored in waiting.drain():
        found = entry(stored.kind, stored.object, labels=tools.labels)
        record = tools.records.of(tools.lineage.top(found))
        content = as_created(stored.object)
        record.templates.update(_template_contents(stored.kind, content))
        tools.stock.templates(found.name, stored.kind.group, content)
        if record.selected:
            judgement = tools.judging.judge(creation(stored.kind, content))
            record.add(judgement, found.name)
            tools.exemptions |= judgement.exemptions
            resource = tools.resources[stored.kind.group, stored.kind.kind]
            tools.coverage.judged(resource, judgement.called, len(judgement.skipped))


def _judge_pods(tools: Tools, reading: Reading, source: Source, pods: AuditedResource) -> None:
    found = PodScan(tools, tools.ruleset.config.exemptions, frozenset(reading.pods_asked_for))
    try:
        for stored in source.read(pods.kind):
            reading.counts[pods.kind.name] += 1
            found.take(stored)
    except NotReadError as error:
        reading.missed(pods, error)
    else:
        reading.covered(pods)


def _template_contents(kind: GroupVersionKind, obj: Object) -> Iterator[bytes]:
    """Yield the contents of the Pods that the templates of a workload describe, as the API server would store them."""
    for template in pod_templates(kind.group, kind.kind, Field(obj)):
        pod: Object = {"metadata": template["metadata"].value or {}, "spec": template["spec"].value}
        defaulted = with_defaults(Request(_POD, Operation.CREATE, pod)).object
        yield digest(pod_as_created(defaulted or {}, kind.kind))


def _report(source: Source, tools: Tools, reading: Reading, options: Options, today: dt.date) -> AuditReport:
    config = tools.ruleset.config
    target = config.target
    return AuditReport(
        cluster=source.cluster,
        time=options.time,
        generation=options.generation,
        target=f"Kubernetes {target.kubernetes}, Karpenter {target.karpenter}, KEDA {target.keda}",
        audited=worst_first(tools.records.audited()),
        counts=dict(sorted(reading.counts.items())),
        not_evaluated=(*reading.not_evaluated, *source.trouble(), *tools.lineage.missing(), *reading.absent()),
        coverage=tools.coverage.share,
        expired=tuple(enforcement.expired(config.exemptions, today)),
        unused=tuple(enforcement.unused(config.exemptions, today, tools.exemptions)),
        remarks=(*options.remarks, *_remarks(tools, today)),
    )


def _remarks(tools: Tools, today: dt.date) -> Iterator[str]:
    config = tools.ruleset.config
    if config.excluded_namespaces:
        yield f"the policy file leaves these namespaces alone: {', '.join(sorted(config.excluded_namespaces))}"
    people = enforcement.bound_to_people(config.exemptions, today)
    if people:
        yield f"{people} exemptions name users or groups; they let nothing off here, where nobody creates the objects"
