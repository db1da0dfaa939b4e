"""Audit a source: read every object once, evaluate it, and aggregate findings by top-level owner."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate import __version__
from gpugate.policies.engine import enforcement
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.ruleset import Needs
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.node_types import NODE_TYPE_NEEDS
from gpugate.policies.sdk.objects import KUBELET, KUBELETS, GroupVersionKind, Operation, Request, is_known
from gpugate.policies.sdk.platform import CLUSTER_NAME
from gpugate.policies.sdk.pod_templates import TEMPLATES, pod_templates
from gpugate.policies.sdk.unknown_kinds import UnknownKind
from gpugate.webhook.audit.facts import AuditFacts
from gpugate.webhook.audit.inventory import FINISHED, Demand, GpuPod, Room, Stock, room_of_pod
from gpugate.webhook.audit.model import Action, Audited, AuditReport, NotEvaluated, Summary
from gpugate.webhook.audit.owners import Lineage, entry
from gpugate.webhook.audit.pending import POD_NEEDS, POLICY, Pending, is_waiting
from gpugate.webhook.audit.records import Records, covered_policies, each_cause_once
from gpugate.webhook.audit.source import NotReadError, Packed
from gpugate.webhook.audit.verdicts import Judging, as_created, creation, pod_as_created
from gpugate.webhook.cluster.discovery import resource_name
from gpugate.webhook.registration.rbac import AuditedResource, audited_resources
from gpugate.webhook.report.copies import digest
from gpugate.webhook.report.summary import unknown_kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.engine.config import Exemption
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.pod_templates import TemplatePath
    from gpugate.webhook.audit.inventory import Inventory
    from gpugate.webhook.audit.owners import Entry
    from gpugate.webhook.audit.records import Covered
    from gpugate.webhook.audit.selection import Options
    from gpugate.webhook.audit.source import Object as SourceObject
    from gpugate.webhook.audit.source import Source, Stored
    from gpugate.webhook.audit.verdicts import Judgement, Object


@dataclass(slots=True)
class _Kind:
    called: int = 0
    skipped: int = 0
    read: float = 1.0


@dataclass(slots=True)
class Coverage:
    """Counts read and evaluated objects; kinds have their names in RBAC, such as `pods`."""

    _kinds: dict[str, _Kind] = field(default_factory=dict)

    def wanted(self, kind: str) -> None:
        """Add a served kind that policies evaluate or look up."""
        self._kinds.setdefault(kind, _Kind())

    def missed(self, kind: str, read: int, left: int | None) -> None:
        """Set how many objects of a kind were read, and how many were not; None if unknown."""
        self._kinds.setdefault(kind, _Kind()).read = read / (read + left) if left and read else 0.0

    def evaluated(self, kind: str, called: int, skipped: int) -> None:
        """Add the numbers of called and skipped policies on objects of a kind."""
        counted = self._kinds.setdefault(kind, _Kind())
        counted.called += called
        counted.skipped += skipped

    @property
    def share(self) -> float:
        """The evaluated share, from 0 to 1: the mean over all kinds, with equal weights.

        The share of a kind is the share of its objects that were read, times the share of their evaluations that had the
        required data. An incomplete list counts as 0, unless the API server reported the number of remaining objects.
        """
        return sum(self._shares.values()) / len(self._kinds) if self._kinds else 1.0

    @property
    def _shares(self) -> Mapping[str, float]:
        return {
            name: kind.read * (1 - kind.skipped / kind.called if kind.called else 1.0)
            for name, kind in self._kinds.items()
        }


@dataclass(slots=True)
class Tools:
    """The data that objects are evaluated with, and the collections of results.

    Attributes:
        labels: whether objects are selected by labels, so that these must be kept.
        resources: group and kind -> the resource, as RBAC names it.
        exemptions: those that lowered a finding, by their places in the configuration.
    """

    ruleset: Ruleset
    facts: AuditFacts
    lineage: Lineage
    records: Records
    judging: Judging
    stock: Stock
    pending: Pending
    coverage: Coverage
    labels: bool
    resources: Mapping[tuple[str, str], str]
    exemptions: set[int] = field(default_factory=set)


class Reading:
    """Reads one resource after the other.

    Attributes:
        waiting: the objects to evaluate, in the order in which they were read.
        of_pods: the objects to evaluate once Pods are known, because Pods own them.
        counts: kind -> how many objects were read.
        not_evaluated: what could not be read.
        unread: resources of which not everything was read.
        uid: the UID of the namespace `kube-system`; empty if it was not read.
    """

    def __init__(self, source: Source, tools: Tools) -> None:
        self._source = source
        self._tools = tools
        self.waiting = Packed()
        self.of_pods = Packed()
        self.pods_asked_for: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.not_evaluated: list[NotEvaluated] = []
        self.unread: set[str] = set()
        self.uid = ""
        self._absent: list[AuditedResource] = []
        self._served: set[str] = set()

    def read(self, resource: AuditedResource) -> None:
        """Read all objects of a resource, or say why not."""
        kind, tools = resource.kind, self._tools
        reason, namespaces = "", tuple[str, ...]()
        try:
            for stored in self._source.read(kind):
                self.counts[kind.name] += 1
                self._take(stored, evaluated=resource.evaluated)
        except NotReadError as error:
            reason, namespaces = str(error), error.namespaces
            self.missed(resource, error)
        else:
            self.covered(resource)
            self._served.add(kind.group)
        tools.facts.close(kind, reason, namespaces)
        tools.lineage.knows(kind, unread=reason)

    def covered(self, resource: AuditedResource) -> None:
        """Say that all of a resource was read."""
        if resource.evaluated or resource.needed:
            self._tools.coverage.wanted(resource_name(resource.kind))

    def missed(self, resource: AuditedResource, error: NotReadError) -> None:
        """Say that a resource could not be read, or not all of it."""
        name = resource_name(resource.kind)
        self.unread.add(name)
        if error.absent:
            self._absent.append(resource)
            return
        self.not_evaluated.append(NotEvaluated(name, str(error), error.left))
        if error.namespaces:
            self.covered(resource)
        elif resource.evaluated or resource.needed:
            self._tools.coverage.missed(name, self.counts[resource.kind.name], error.left)

    def absent(self) -> Iterator[NotEvaluated]:
        """Say what is not served at all: kinds that rules look up or of which the group has others, else API groups."""
        names = {
            resource_name(absent.kind) if absent.needed or absent.kind.group in self._served else absent.kind.group
            for absent in self._absent
        }
        if names:
            yield NotEvaluated(", ".join(sorted(names)), self._source.absence)

    def _take(self, stored: Stored, *, evaluated: bool) -> None:
        tools = self._tools
        tools.facts.add(stored)
        tools.stock.object(stored)
        if stored.kind.kind == "Node":
            return
        if stored.kind == _NAMESPACE and _text(stored.object, "metadata", "name") == _SYSTEM:
            uid = _text(stored.object, "metadata", "uid")
            # It becomes part of paths, and a dump can contain anything.
            self.uid = uid if re.fullmatch(CLUSTER_NAME, uid) else ""
        object_entry = entry(stored.kind, stored.object, labels=tools.labels)
        tools.lineage.owners.add(object_entry)
        if not evaluated or self._is_made_from_template(stored.kind, object_entry):
            return
        if object_entry.reference and object_entry.reference.kind == "Pod":
            self.pods_asked_for.add(object_entry.reference.uid)
            self.of_pods.add(stored)
        else:
            self.waiting.add(stored)

    def _is_made_from_template(self, kind: GroupVersionKind, object_entry: Entry) -> bool:
        """Tell whether an object has only Pod templates that its owner's template contains already."""
        if object_entry.reference is None or (kind.group, kind.kind) not in TEMPLATES:
            return False
        ruleset = self._tools.ruleset
        if ruleset.handlers(kind, mutating=False) or ruleset.handlers(kind, mutating=True):
            return False
        owner = self._tools.lineage.owners.of(object_entry.reference, object_entry.name.namespace)
        return owner is not None and _pair(owner) in TEMPLATES


def _pair(owner: Entry) -> tuple[str, str]:
    return owner.name.api_version.rpartition("/")[0], owner.name.kind


# The number of different Pods in the cache; lists are sorted by name, so equal Pods are close to each other.
_REMEMBERED: Final = 20_000
_MIRROR: Final = "kubernetes.io/config.mirror"
_Key = tuple[str, str, bytes, tuple[bool, ...]]


@dataclass(slots=True)
class _Known:
    """The result for all Pods with the same content."""

    demand: Demand
    room: Room
    judgement: Judgement | None = None


class PodScan:
    """Evaluates Pods; `uids` are Pods that own other objects."""

    def __init__(self, tools: Tools, exemptions: Sequence[Exemption], uids: frozenset[str]) -> None:
        self._tools = tools
        self._known: dict[_Key, _Known] = {}
        self._uids = uids
        # Only exemptions depend on the name of a Pod.
        self._names = [exemption.names for exemption in exemptions if exemption.names != ("*",)]

    def take(self, stored: Stored) -> None:
        """Evaluate a Pod if necessary, and count it for its top-level owner."""
        tools, pod = self._tools, stored.object
        self_entry = entry(stored.kind, pod, labels=tools.labels)
        if self_entry.uid in self._uids:
            tools.lineage.owners.add(self_entry)
        record = tools.records.of(tools.lineage.top(self_entry))
        owner_kind = self_entry.reference.kind if self_entry.reference else ""
        content = pod_as_created(pod, owner_kind)
        mark = digest(content)
        known = self._of(content, (self_entry.name.namespace, owner_kind, mark, self._named(self_entry)))
        if record.selected and mark not in record.templates:
            if known.judgement is None:
                known.judgement = tools.judging.judge(creation(stored.kind, content, *_creator(pod)))
                tools.exemptions |= known.judgement.exemptions
            tools.coverage.evaluated("pods", known.judgement.called, len(known.judgement.skipped))
            record.add(known.judgement, self_entry.name)
        if record.selected and known.demand and is_waiting(pod):
            tools.pending.add(stored.kind, content, self_entry.name, record.name, mark)
        phase = _text(pod, "status", "phase")
        if phase not in FINISHED:
            record.pods += 1
            name, node = self_entry.name, _text(pod, "spec", "nodeName")
            started = _text(pod, "status", "startTime") or _text(pod, "metadata", "creationTimestamp")
            team = tools.stock.team(Field(pod), name.namespace) if known.demand else ""
            head = (record.name, name.namespace, name.name, node, phase)
            tools.stock.pod(GpuPod(*head, known.demand, known.room, started, team), known.room)

    def _of(self, content: Object, key: _Key) -> _Known:
        known = self._known.get(key)
        if known is None:
            while len(self._known) >= _REMEMBERED:
                del self._known[next(iter(self._known))]
            pod = Field(content)
            known = self._known[key] = _Known(self._tools.stock.demand(pod, key[0]), room_of_pod(pod))
        return known

    def _named(self, pod: Entry) -> tuple[bool, ...]:
        return tuple(any(formats.matches(pattern, pod.name.name) for pattern in names) for names in self._names)


def _creator(pod: Object) -> tuple[str, tuple[str, ...]]:
    """Return the user name and groups of the creator of a mirror Pod, which is the kubelet; empty for other Pods."""
    metadata = pod.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    is_mirror = isinstance(annotations, dict) and _MIRROR in annotations
    return (f"{KUBELET}{_text(pod, 'spec', 'nodeName')}", (KUBELETS,)) if is_mirror else ("", ())


def _text(obj: Object, *path: str) -> str:
    value: Any = obj
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


_POD = GroupVersionKind("", "v1", "Pod")
_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
# Every cluster has it, and its UID changes only with the cluster: the id that OpenTelemetry's `k8s.cluster.uid` has too.
_SYSTEM: Final = "kube-system"
_ORDER = list(Action)


@dataclass(frozen=True, slots=True)
class Scan:
    """An audit.

    Attributes:
        report: the report without costs.
        inventory: what costs are computed from.
        covered: the policies that would deny objects once their findings are exempt.
        facts: the cluster data that the objects were evaluated with.
        exemptions: those that lowered a finding, by their places in the configuration.
    """

    report: AuditReport
    inventory: Inventory
    covered: Covered
    facts: Facts
    exemptions: frozenset[int] = frozenset()


def scan(source: Source, ruleset: Ruleset, options: Options) -> Scan:
    """Audit a source.

    Pods are read last and streamed. All other objects are packed until the cluster data is complete, because a verdict may
    depend on any of it.

    Raises:
        CallError: the cluster is unreachable.
    """
    today = options.time.astimezone(dt.UTC).date()
    tools = _tools(source, ruleset, options, today)
    reading = Reading(source, tools)
    *resources, pods = audited_resources(ruleset)
    for resource in (*_added(source, ruleset, reading, resources), *resources):
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
        covered_policies(tools.records.selected()),
        tools.facts,
        frozenset(tools.exemptions),
    )


def _added(
    source: Source, ruleset: Ruleset, reading: Reading, resources: Iterable[AuditedResource]
) -> Iterator[AuditedResource]:
    """Yield the kinds that the policy file adds, with their plural from the cluster."""
    known = {(resource.kind.group, resource.kind.name) for resource in resources}
    for gvk in ruleset.pod_templates:
        if (gvk.group, gvk.kind) in known:
            continue
        try:
            yield AuditedResource(source.find(gvk.api_version, gvk.kind), evaluated=True)
        except NotReadError as error:
            reading.not_evaluated.append(NotEvaluated(str(gvk), str(error)))


def worst_first(audited: Iterable[Audited]) -> tuple[Audited, ...]:
    """Sort objects by action, then by the cost of their GPUs, then by name."""

    def rank(owner: Audited) -> tuple[int, float, float, str, str, str]:
        usd = sum(allocated.usd_per_hour or 0 for allocated in owner.allocated)
        name = owner.object
        gpus = sum(allocated.gpus for allocated in owner.allocated)
        return _ORDER.index(owner.action), -usd, -gpus, name.namespace, name.kind, name.name

    return tuple(sorted(audited, key=rank))


def _tools(source: Source, ruleset: Ruleset, options: Options, today: dt.date) -> Tools:
    # The cost needs the types of nodes, even if no policy reads them.
    types = NODE_TYPE_NEEDS if ruleset.config.platform.catalogue else ()
    facts = AuditFacts(Needs(ruleset.rules, (*POD_NEEDS, *types)))
    excluded = options.selection.excluded | frozenset(ruleset.config.excluded_namespaces)
    labels = options.selection.labels is not None
    return Tools(
        ruleset=ruleset,
        facts=facts,
        lineage=Lineage(source, labels=labels),
        records=Records(replace(options.selection, excluded=excluded)),
        judging=Judging(ruleset, facts, today),
        stock=Stock(ruleset, facts),
        pending=Pending(ruleset, facts),
        coverage=Coverage(),
        labels=labels,
        resources={(r.kind.group, r.kind.name): resource_name(r.kind) for r in audited_resources(ruleset)},
    )


def _judge_all(tools: Tools, waiting: Packed) -> None:
    for stored in waiting.drain():
        object_entry = entry(stored.kind, stored.object, labels=tools.labels)
        record = tools.records.of(tools.lineage.top(object_entry))
        content = as_created(stored.object, keep_version=True)
        added = tools.ruleset.pod_templates.get(stored.kind, ())
        record.templates.update(_template_contents(stored.kind, content, added))
        tools.stock.templates(object_entry.name, stored.kind, content)
        if record.selected:
            judgement = tools.judging.judge(creation(stored.kind, content))
            record.add(judgement, object_entry.name)
            tools.exemptions |= judgement.exemptions
            resource = tools.resources.get((stored.kind.group, stored.kind.kind)) or str(stored.kind)
            tools.coverage.evaluated(resource, judgement.called, len(judgement.skipped))


def _judge_pods(tools: Tools, reading: Reading, source: Source, pods: AuditedResource) -> None:
    pod_scan = PodScan(tools, tools.ruleset.config.exemptions, frozenset(reading.pods_asked_for))
    try:
        for stored in source.read(pods.kind):
            reading.counts[pods.kind.name] += 1
            pod_scan.take(stored)
    except NotReadError as error:
        reading.missed(pods, error)
    else:
        reading.covered(pods)


def _template_contents(kind: GroupVersionKind, obj: SourceObject, added: Sequence[TemplatePath]) -> Iterator[bytes]:
    """Yield the digests of the Pods of a workload's templates, with the defaults of the API server."""
    for template in pod_templates(kind.group, kind.kind, Field(obj), added):
        pod: SourceObject = {"metadata": template["metadata"].value or {}, "spec": template["spec"].value}
        defaulted = with_defaults(Request(_POD, Operation.CREATE, pod)).object
        yield digest(pod_as_created(defaulted or {}, kind.kind))


def _report(source: Source, tools: Tools, reading: Reading, options: Options, today: dt.date) -> AuditReport:
    config = tools.ruleset.config
    target = config.target
    records = tools.records.selected()
    audited = worst_first(each_cause_once(records))
    reported = (record.name for record in records if any(stated.finding.policy == POLICY for stated in record.findings))
    return AuditReport(
        gpugate=__version__,
        cluster=msgspec.structs.replace(source.cluster, uid=reading.uid, id=reading.uid),
        time=options.time,
        generation=options.generation,
        target=f"Kubernetes {target.kubernetes}, Karpenter {target.karpenter}, KEDA {target.keda}",
        coverage=tools.coverage.share,
        summary=Summary.of(audited),
        counts=dict(sorted(reading.counts.items())),
        audited=audited,
        not_evaluated=(*reading.not_evaluated, *source.trouble(), *tools.lineage.missing(), *reading.absent()),
        pending=tuple(tools.pending.report(reported)),
        expired=tuple(enforcement.expired(config.exemptions, today)),
        unused=tuple(enforcement.unused(config.exemptions, today, tools.exemptions)),
        remarks=(*options.remarks, *_remarks(tools, today), *unknown_kinds(_unknown_owners(tools))),
        run_id=options.run_id,
    )


def _unknown_owners(tools: Tools) -> Iterator[UnknownKind]:
    """Yield the kinds of the owners of Pods with GPUs that no policy knows; their Pods were evaluated, they were not."""
    owners = {pod.owner for pod in tools.stock.pods_with_gpus}
    counts = Counter((owner.api_version, owner.kind) for owner in owners)
    for (api_version, kind), count in sorted(counts.items()):
        gvk = GroupVersionKind.of(api_version, kind)
        if not is_known(gvk.group, gvk.kind) and gvk not in tools.ruleset.pod_templates:
            yield UnknownKind(api_version, kind, count, count)


def _remarks(tools: Tools, today: dt.date) -> Iterator[str]:
    config = tools.ruleset.config
    if config.excluded_namespaces:
        yield f"not evaluated: namespaces {', '.join(sorted(config.excluded_namespaces))}"
    people = enforcement.bound_to_people(config.exemptions, today)
    if people:
        yield f"{people} exemptions for users or groups do not apply, because an audit has no user who creates the objects"
