"""Reads everything but Pods: as facts, as owners, for the inventory, and packed until all facts are known."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpugate.policies.sdk.objects import TEMPLATES
from gpugate.webhook.audit.owners import entry
from gpugate.webhook.audit.packed import Packed
from gpugate.webhook.audit.sources.source import NotReadError
from gpugate.webhook.cluster.discovery import resource_name
from gpugate.webhook.report.audited import NotEvaluated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.webhook.audit.owners import Entry
    from gpugate.webhook.audit.sources.source import Source, Stored
    from gpugate.webhook.audit.tools import Tools
    from gpugate.webhook.generate.audited_resources import AuditedResource


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
