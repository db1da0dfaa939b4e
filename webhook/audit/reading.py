"""Read everything except Pods: as cluster data, as owners, for the inventory, and packed for later evaluation."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from gpugate.policies.sdk.pod_templates import TEMPLATES
from gpugate.webhook.audit.model import NotEvaluated
from gpugate.webhook.audit.owners import entry
from gpugate.webhook.audit.source import NotReadError, Packed
from gpugate.webhook.cluster.discovery import resource_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.webhook.audit.facts import AuditFacts
    from gpugate.webhook.audit.inventory import Stock
    from gpugate.webhook.audit.owners import Entry, Lineage
    from gpugate.webhook.audit.scan import Coverage, Records
    from gpugate.webhook.audit.source import Source, Stored
    from gpugate.webhook.audit.verdicts import Judging
    from gpugate.webhook.registration.rbac import AuditedResource


@dataclass(slots=True)
class Tools:
    """What objects are judged with, and where the results go.

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
    coverage: Coverage
    labels: bool
    resources: Mapping[tuple[str, str], str]
    exemptions: set[int] = field(default_factory=set)


Object = dict[str, Any]  # Any: the JSON edge

# What controllers make different in Pods that are otherwise equal. No policy can be about the values: they say which
# copy it is (Kubernetes v1.36, JobSet v0.12.0, LWS v0.10.0, training-operator v1.9.4).
_COPY: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "controller-revision-hash",
        "controller-uid",
        "jobset.sigs.k8s.io/job-global-index",
        "jobset.sigs.k8s.io/job-index",
        "jobset.sigs.k8s.io/job-key",
        "leaderworkerset.sigs.k8s.io/group-index",
        "leaderworkerset.sigs.k8s.io/group-key",
        "leaderworkerset.sigs.k8s.io/template-revision-hash",
        "leaderworkerset.sigs.k8s.io/worker-index",
        "pod-template-generation",
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
        "training.kubeflow.org/replica-index",
    }
)
# Which of them a Job that is not indexed does not write: that there is one tells what kind of Job it is.
_TELLING: Final = "batch.kubernetes.io/job-completion-index"
_OF_ONE_COPY: Final = frozenset({"hostname", "subdomain"})


def digest(pod: Object) -> bytes:
    """Return 16 bytes that are the same for Pods, or Pod templates, that only differ in which copy they are.

    `pod` is as `as_created.pod_as_created` returns it.
    """
    metadata, spec = pod.get("metadata"), pod.get("spec")
    metadata = metadata if isinstance(metadata, dict) else {}
    seen = [
        _marks(metadata.get("labels")),
        _marks(metadata.get("annotations")),
        _spec(spec) if isinstance(spec, dict) else spec,
    ]
    return hashlib.blake2b(orjson.dumps(seen, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _marks(marks: Any) -> Any:
    if not isinstance(marks, dict) or not marks:
        return {}
    kept = {key: value for key, value in marks.items() if key not in _COPY}
    if _TELLING in marks:
        kept[_TELLING] = ""
    return kept


def _spec(spec: Object) -> Object:
    kept = {key: value for key, value in spec.items() if key not in _OF_ONE_COPY}
    volumes = kept.get("volumes")
    if isinstance(volumes, list):
        kept["volumes"] = [_volume(volume) for volume in volumes]
    return kept


def _volume(volume: Any) -> Any:
    """Leave out the name of a PersistentVolumeClaim: a StatefulSet makes one for each of its Pods."""
    if isinstance(volume, dict) and "persistentVolumeClaim" in volume:
        return {"name": volume.get("name"), "persistentVolumeClaim": {}}
    return volume


class Reading:
    """Reads one resource after the other.

    Attributes:
        waiting: what is to be judged, in the order in which it was read.
        of_pods: what is to be judged once Pods are known, because they made it.
        counts: kind -> how many objects were read.
        not_evaluated: what could not be read.
        unread: resources of which not everything was read.
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
        self._absent: list[AuditedResource] = []
        self._served: set[str] = set()

    def read(self, resource: AuditedResource) -> None:
        """Read all objects of a resource, or say why not."""
        kind, tools = resource.kind, self._tools
        reason, namespaces = "", tuple[str, ...]()
        try:
            for stored in self._source.read(kind):
                self.counts[kind.name] += 1
                self._take(stored, judged=resource.judged)
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
        if resource.judged or resource.needed:
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
        elif resource.judged or resource.needed:
            self._tools.coverage.missed(name, self.counts[resource.kind.name], error.left)

    def absent(self) -> Iterator[NotEvaluated]:
        """Say what is not served at all: kinds that rules look up or of which the group has others, else API groups."""
        names = {
            resource_name(absent.kind) if absent.needed or absent.kind.group in self._served else absent.kind.group
            for absent in self._absent
        }
        if names:
            yield NotEvaluated(", ".join(sorted(names)), self._source.absence)

    def _take(self, stored: Stored, *, judged: bool) -> None:
        tools = self._tools
        tools.facts.add(stored)
        tools.stock.object(stored)
        if stored.kind.kind == "Node":
            return
        found = entry(stored.kind, stored.object, labels=tools.labels)
        tools.lineage.owners.add(found)
        if not judged or self._is_made_from_template(stored.kind, found):
            return
        if found.reference and found.reference.kind == "Pod":
            self.pods_asked_for.add(found.reference.uid)
            self.of_pods.add(stored)
        else:
            self.waiting.add(stored)

    def _is_made_from_template(self, kind: GroupVersionKind, found: Entry) -> bool:
        """Tell whether an object holds Pod templates that its owner's template says already, and nothing else is judged."""
        if found.reference is None or (kind.group, kind.kind) not in TEMPLATES:
            return False
        ruleset = self._tools.ruleset
        if ruleset.handlers(kind, mutating=False) or ruleset.handlers(kind, mutating=True):
            return False
        owner = self._tools.lineage.owners.of(found.reference, found.name.namespace)
        return owner is not None and _pair(owner) in TEMPLATES


def _pair(owner: Entry) -> tuple[str, str]:
    return owner.name.api_version.rpartition("/")[0], owner.name.kind
