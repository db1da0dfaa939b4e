"""Judges Pods one by one as they are read, equal ones once, and those that are as their template says not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk import formats
from gpugate.policies.sdk.field import Field
from gpugate.webhook.audit.as_created import pod_as_created
from gpugate.webhook.audit.content import digest
from gpugate.webhook.audit.inventory import FINISHED, Demand, GpuPod
from gpugate.webhook.audit.owners import entry
from gpugate.webhook.audit.room import Room, room_of_pod
from gpugate.webhook.audit.verdicts import creation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.engine.config import Exemption
    from gpugate.webhook.audit.as_created import Object
    from gpugate.webhook.audit.owners import Entry
    from gpugate.webhook.audit.sources.source import Stored
    from gpugate.webhook.audit.tools import Tools
    from gpugate.webhook.audit.verdicts import Judgement

# Pods that differ in what policies see of them; in a list by names, equal ones stand close to each other.
_REMEMBERED: Final = 20_000
_MIRROR: Final = "kubernetes.io/config.mirror"
_Key = tuple[str, str, bytes, tuple[bool, ...]]


@dataclass(slots=True)
class _Known:
    """What is known of all Pods with one content."""

    demand: Demand
    room: Room
    judgement: Judgement | None = None


class PodScan:
    """Takes Pods in; `uids` are Pods of which others ask who made them."""

    def __init__(self, tools: Tools, exemptions: Sequence[Exemption], uids: frozenset[str]) -> None:
        self._tools = tools
        self._known: dict[_Key, _Known] = {}
        self._uids = uids
        # Which exemption fits may hang on the name, which otherwise tells nothing.
        self._names = [exemption.names for exemption in exemptions if exemption.names != ("*",)]

    def take(self, stored: Stored) -> None:
        """Judge a Pod where that is needed, and count it for its top owner."""
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
                known.judgement = tools.judging.judge(creation(stored.kind, content, _user(pod)))
                tools.exemptions |= known.judgement.exemptions
            tools.coverage.judged("pods", known.judgement.called, len(known.judgement.skipped))
            record.add(known.judgement, self_entry.name)
        phase = _text(pod, "status", "phase")
        if phase not in FINISHED:
            record.pods += 1
            name, node = self_entry.name, _text(pod, "spec", "nodeName")
            held = GpuPod(record.name, name.namespace, name.name, node, phase, known.demand, known.room)
            tools.stock.pod(held, known.room)

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


def _user(pod: Object) -> str:
    """Return who creates a Pod where that tells something: the kubelet, of its mirror Pods."""
    metadata = pod.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    is_mirror = isinstance(annotations, dict) and _MIRROR in annotations
    return f"system:node:{_text(pod, 'spec', 'nodeName')}" if is_mirror else ""


def _text(obj: Object, *path: str) -> str:
    value: Any = obj
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
