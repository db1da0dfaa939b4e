"""Clusters in memory: `audited(pod, deployment, ...)` audits objects, `workload(...)` and `pod(...)` make some."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.objects import GroupVersionKind, Kind
from gpugate.webhook.audit.model import Audited, Cluster, NotEvaluated
from gpugate.webhook.audit.scan import Scan, scan
from gpugate.webhook.audit.selection import Options, Selection
from gpugate.webhook.audit.source import NotReadError, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Json = dict[str, Any]
TIME: Final = dt.datetime(2026, 11, 21, 10, 0, tzinfo=dt.UTC)


@dataclass
class MemorySource:
    """Objects; `refused` is kind -> why its objects cannot be read, `late` is found only by name, after the lists."""

    objects: Sequence[Json]
    refused: dict[str, NotReadError] = field(default_factory=dict)
    late: Sequence[Json] = ()
    lists: list[str] = field(default_factory=list)

    @property
    def cluster(self) -> Cluster:
        return Cluster("memory", "v1.36.3")

    @property
    def absence(self) -> str:
        return "not served"

    def read(self, kind: Kind) -> Iterator[Stored]:
        self.lists.append(f"{kind.plural}.{kind.group}")
        yield from (stored(obj) for obj in self.objects if _is(obj, kind))
        if kind.name in self.refused:
            raise self.refused[kind.name]

    def find(self, api_version: str, name: str) -> Kind:
        if name in self.refused:
            raise self.refused[name]
        gvk = GroupVersionKind.of(api_version, name)
        return Kind(gvk.group, (gvk.version,), name, f"{name.lower()}s")

    def fetch(self, kind: Kind, namespace: str, name: str) -> Stored | None:
        places = ((namespace, name), ("", name))
        found = (
            o
            for o in self.late
            if _is(o, kind) and (o["metadata"].get("namespace", ""), o["metadata"]["name"]) in places
        )
        return next((stored(obj) for obj in found), None)

    def trouble(self) -> Sequence[NotEvaluated]:
        return ()


def stored(obj: Json) -> Stored:
    return Stored(GroupVersionKind.of(obj["apiVersion"], obj["kind"]), obj)


def audited(
    *objects: Json,
    config: PolicyConfig | None = None,
    selection: Selection | None = None,
    source: MemorySource | None = None,
    time: dt.datetime = TIME,
) -> Scan:
    rules = bind(CATALOG, config or PolicyConfig())
    return scan(source or MemorySource(objects), rules, Options(time, selection=selection or Selection()))


def found(scan: Scan) -> dict[str, Audited]:
    """Return what was reported on, by `Kind/namespace/name`."""
    return {str(each.object): each for each in scan.report.audited}


def policies(audited: Audited) -> set[str]:
    return {finding.policy for finding in audited.findings}


def named(kind: str, name: str, namespace: str = "team", api_version: str = "v1", owner: Json | None = None) -> Json:
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"{kind}-{namespace}-{name}"}
    if owner:
        head = {key: owner[key] for key in ("apiVersion", "kind")}
        metadata["ownerReferences"] = [
            {**head, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
        ]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def gpu_spec(gpus: int = 1, **others: Any) -> Json:
    amounts = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "a", "resources": {"limits": amounts, "requests": dict(amounts)}}
    return {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "containers": [container], **others}


def workload(kind: str, name: str, spec: Json | None = None, namespace: str = "team", **head: Any) -> Json:
    """Return a Deployment, StatefulSet, ReplicaSet or Job whose Pods have a spec: by default without a toleration."""
    api_version = "batch/v1" if kind == "Job" else "apps/v1"
    template = {"metadata": {"labels": {"app": name}}, "spec": spec or gpu_spec()}
    return {**named(kind, name, namespace, api_version, **head), "spec": {"replicas": 1, "template": template}}


def pod(name: str, spec: Json | None = None, namespace: str = "team", owner: Json | None = None, **labels: str) -> Json:
    """Return a running Pod on a node, as the API server stores it."""
    made = named("Pod", name, namespace, owner=owner)
    made["metadata"]["labels"] = labels
    return {**made, "spec": {**(spec or gpu_spec()), "nodeName": "node-1"}, "status": {"phase": "Running"}}


def _is(obj: Json, kind: Kind) -> bool:
    return (obj["apiVersion"].rpartition("/")[0], obj["kind"]) == (kind.group, kind.name)
