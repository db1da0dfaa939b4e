"""An audit, and its JSON document `gpugate.dev/audit/v1`: one record for each top-level owner, gaps, and the cost of GPUs.

The records are the document: `formats/json.py` writes and reads them as they are, and its JSON schema is made from them. Within
a version, fields are only added; readers ignore unknown fields.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gpugate.policies.sdk.findings import ModeName, Patch, Patches, Replacement, Stance
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA: Final = "gpugate.dev/audit/v1"

Usd = Annotated[float, Meta(description="US dollars per hour")]
Gpus = Annotated[float, Meta(description="GPUs; a MIG slice is its share of one")]


class Action(StrEnum):
    """What the webhook would do with an object if it were created now: the worst of its findings decides."""

    DENY = "deny"
    """The webhook would deny it."""
    MUTATE = "mutate"
    """The webhook would patch it."""
    WARN = "warn"
    """The webhook would allow it with a warning."""
    RECORD = "record"
    """The webhook would allow it, and count its findings in metrics and audit annotations only."""
    ALLOW = "allow"
    """No policy has a finding."""


_RANKS: Final = {action: rank for rank, action in enumerate(Action)}


class Fix(msgspec.Struct, frozen=True):
    """An edit that fixes a finding: patches, or objects that replace the object."""

    safe: Annotated[bool, Meta(description="false if the fix may change scheduling or cost")]
    patches: tuple[Patch, ...] | None = None
    objects: tuple[dict[str, Any], ...] | None = None

    @classmethod
    def of(cls, edit: Patches | Replacement | None) -> Fix | None:
        """Return the record of a policy's edit."""
        if isinstance(edit, Patches):
            return cls(edit.safe, patches=edit.patches)
        return cls(edit.safe, objects=edit.objects) if edit else None

    @property
    def edit(self) -> Patches | Replacement:
        """The edit as policies make it."""
        if self.objects is not None:
            return Replacement(self.objects, self.safe)
        return Patches(self.patches or (), self.safe)


class Finding(msgspec.Struct, frozen=True):
    """A finding of one policy in one object."""

    policy: Annotated[str, Meta(description="id of the policy; empty for a field of the wrong type")]
    path: Annotated[str, Meta(description="the field; empty for the whole object")]
    message: str
    mode: Annotated[ModeName, Meta(description="mode of the finding")]
    action: Annotated[Action, Meta(description="what the webhook would do with the object because of this finding")]
    why: str = ""
    hint: str = ""
    note: Annotated[str, Meta(description="why the mode is lower than that of the policy, such as an exemption")] = ""
    remedy: Fix | None = msgspec.field(default=None, name="fix")
    patches: Annotated[tuple[Patch, ...], Meta(description="the changes that a mutating policy would make")] = ()
    template_of: Annotated[str, Meta(description="kind of the workload, if the finding is in its Pod template")] = ""
    dependent: Annotated[
        ObjectName | None, Meta(description="the object with the finding, if the audited object only owns it")
    ] = None
    related: Annotated[tuple[ObjectName, ...], Meta(description="other objects with the same cause")] = ()

    @property
    def stance(self) -> Stance:
        """The mode, which can be compared with others."""
        return Stance[self.mode.upper()]

    @property
    def fix(self) -> Patches | Replacement | None:
        """The edit that fixes the finding; None if there is no automatic fix."""
        return self.remedy.edit if self.remedy else None

    @property
    def location(self) -> str:
        """The location: the path, after the name of the dependent if there is one."""
        return ": ".join(part for part in (str(self.dependent or ""), self.path) if part)


def worst(findings: Iterable[Finding]) -> Action:
    """Return the worst action of findings."""
    return min((finding.action for finding in findings), key=_RANKS.__getitem__, default=Action.ALLOW)


class AllocatedGpus(msgspec.Struct, frozen=True):
    """GPUs that are allocated to the Pods of an object."""

    resource: Annotated[str, Meta(description="extended resource; a MIG profile counts as its share of a GPU")]
    model: Annotated[str, Meta(description="name of the GPU in the instance catalogue, such as h100; empty if unknown")]
    gpus: Gpus
    usd_per_hour: Usd | None


class Use(StrEnum):
    """What an allocated GPU did in the window, by the metrics of its exporter."""

    BUSY = "busy"
    """It worked."""
    UNDER_USED = "under-used"
    """Its mean activity was below 20 %."""
    PARKED = "parked"
    """It did not work, but its memory is in use, as with a loaded model without requests."""
    IDLE = "idle"
    """It did not work."""
    DOUBTFUL = "doubtful"
    """The metrics contradict each other."""
    UNKNOWN = "unknown"
    """There is not enough data."""


class Used(msgspec.Struct, frozen=True):
    """Allocated GPUs with the same use."""

    use: Use
    gpus: Gpus
    usd_per_hour: Usd | None


Ratio = Annotated[float, Meta(description="from 0 to 1")]


class DeviceUse(msgspec.Struct, frozen=True):
    """What was measured of one device of one Pod; values are null without series of their metric."""

    pod: Annotated[str, Meta(description="namespace/name")]
    node: str
    device: Annotated[str, Meta(description="UUID, and after a slash the id of the MIG slice; empty without series")]
    model: Annotated[str, Meta(description="product name, as the exporter reports it")]
    use: Use
    reason: Annotated[str, Meta(description="the evidence")]
    gpus: Gpus
    usd_per_hour: Usd | None
    profile: Annotated[str, Meta(description="MIG profile; empty for a whole GPU")] = ""
    engine_max: Ratio | None = None
    engine_mean: Ratio | None = None
    utilization_max: Annotated[float, Meta(description="percent")] | None = None
    memory_max: Ratio | None = None
    watts: Annotated[float, Meta(description="mean power; of a MIG slice that of its GPU")] | None = None
    dram_mean: Ratio | None = None
    tensor_mean: Ratio | None = None


class OwnerUse(msgspec.Struct, frozen=True):
    """The use of the GPUs of a top-level owner."""

    used: tuple[Used, ...]
    devices: Annotated[tuple[DeviceUse, ...], Meta(description="the devices of its Pods, highest cost first")]
    query: Annotated[
        str,
        Meta(
            description="query that shows the activity of these devices; of the first 20; empty if they are not NVIDIA's"
        ),
    ]


class Audited(msgspec.Struct, frozen=True):
    """A top-level owner with its Pods: a workload, a NodePool, a ScaledObject, ..."""

    object: ObjectName
    action: Annotated[Action, Meta(description="the worst action of its findings")]
    uid: Annotated[str, Meta(description="empty if a dump does not contain it")] = ""
    pods: Annotated[int, Meta(description="its unfinished Pods, including the object itself if it is one")] = 0
    allocated: tuple[AllocatedGpus, ...] = ()
    findings: Annotated[
        tuple[Finding, ...], Meta(description="its findings, and those of its Pods that differ from its template")
    ] = ()
    skipped: Annotated[dict[str, str], Meta(description="policy -> why it was not evaluated")] = {}
    gpu_use: Annotated[
        OwnerUse | msgspec.UnsetType, Meta(description="the use of its GPUs; missing without --prometheus")
    ] = msgspec.UNSET
    team: Annotated[
        str, Meta(description="team of its Pods with GPUs; of several teams, the one with the most GPUs")
    ] = ""

    @property
    def used(self) -> tuple[Used, ...]:
        """The use of its GPUs; empty if unknown."""
        return self.gpu_use.used if self.gpu_use else ()

    @property
    def devices(self) -> tuple[DeviceUse, ...]:
        """The devices of its Pods."""
        return self.gpu_use.devices if self.gpu_use else ()

    @classmethod
    def of(cls, name: ObjectName, findings: tuple[Finding, ...] = (), **others: Any) -> Audited:
        """Return the record of an object, whose findings decide its action."""
        return cls(name, worst(findings), findings=findings, **others)


class NotEvaluated(msgspec.Struct, frozen=True):
    """A kind or object that was not evaluated; `objects` is null if the number is unknown."""

    what: str
    reason: str
    objects: int | None = None


class Unbounded(msgspec.Struct, frozen=True):
    """An object whose GPUs have no limit; `usd_per_hour` is null if its worst-case cost is unknown."""

    object: ObjectName
    reason: str
    usd_per_hour: Usd | None
    team: Annotated[
        str, Meta(description="team of the Pods that an autoscaler creates, or of a NodePool's nodes by their labels")
    ] = ""


class Wasted(msgspec.Struct, frozen=True):
    """GPUs of nodes that no Pod can use because of the Pods that run beside them."""

    object: ObjectName
    reason: str
    gpus: Gpus
    usd_per_hour: Usd | None


class PoolUse(msgspec.Struct, frozen=True):
    """The GPUs of one NodePool (or of nodes without one) by instance type."""

    node_pool: str
    instance_type: str
    nodes: int
    gpus: Gpus
    allocated: Gpus
    usd_per_hour: Usd | None


class PoolFailure(msgspec.Struct, frozen=True):
    """Why a NodePool cannot launch a node for a Pod."""

    node_pool: str
    term: Annotated[
        str,
        Meta(description="the first term that fails: claims, limits, taints, labels, volumes, types or resources"),
    ]
    reason: str
    change: Annotated[str, Meta(description="the smallest change that removes the failure; empty if none is known")]


class PendingOwner(msgspec.Struct, frozen=True):
    """A top-level owner of Pods that wait for a node."""

    object: ObjectName
    pods: int
    example: Annotated[str, Meta(description="name of one of the Pods")]


class PendingPods(msgspec.Struct, frozen=True):
    """Pods with GPUs for which no NodePool can launch a node now, with one cause."""

    reason: Annotated[str, Meta(description="the NodePools that come closest, each with the first term that fails")]
    hint: Annotated[str, Meta(description="the smallest change")]
    pods: int
    owners: tuple[PendingOwner, ...]
    node_pools: tuple[PoolFailure, ...]


class Spend(msgspec.Struct, frozen=True):
    """What GPUs cost by team, namespace or NodePool; for a NodePool also those that are not allocated."""

    by: Literal["team", "namespace", "pool"]
    name: Annotated[str, Meta(description="empty for Pods without a team, or nodes without a NodePool")]
    gpus: Gpus
    usd_per_hour: Usd | None
    used: tuple[Used, ...] = ()
    at_risk: Annotated[float, Meta(description="US dollars per hour; GPUs of objects that would be denied")] = 0.0


class Cost(msgspec.Struct, frozen=True):
    """The cost of GPUs; docs/audit.md defines each figure."""

    prices: Annotated[str, Meta(description="source, region and date of the prices")]
    at_risk: Usd
    allocated: Usd
    idle: Annotated[float, Meta(description="US dollars per hour; the same as `unallocated`, under its first name")]
    unbounded: tuple[Unbounded, ...] = ()
    wasted: tuple[Wasted, ...] = ()
    pools: tuple[PoolUse, ...] = ()
    unpriced_gpus: Gpus = 0.0
    spend: Usd = 0.0
    unallocated: Usd = 0.0
    used: Annotated[tuple[Used, ...], Meta(description="the use of allocated GPUs; empty without --prometheus")] = ()
    spending: Annotated[tuple[Spend, ...], Meta(description="highest cost first")] = ()


class Usage(msgspec.Struct, frozen=True):
    """The metrics that the use of GPUs was determined with."""

    source: Annotated[str, Meta(description="address of the Prometheus, without credentials")]
    window_seconds: int
    queries: Annotated[int, Meta(description="number of queries that were sent")]
    coverage: Annotated[float, Meta(ge=0, le=1, description="share of the allocated GPUs whose use is known")]
    problems: Annotated[tuple[str, ...], Meta(description="failed queries, and warnings of the server")] = ()


class Cluster(msgspec.Struct, frozen=True):
    """The audited cluster, or the paths of the dump, and the user of the audit."""

    name: Annotated[str, Meta(description="context of the kubeconfig, address of the API server, or paths of the dump")]
    version: Annotated[str, Meta(description="version of the API server")] = ""
    user: str = ""
    uid: Annotated[str, Meta(description="UID of the namespace `kube-system`; empty if unknown")] = ""
    id: Annotated[
        str,
        Meta(description="tells the cluster from others: its configured name, else `uid`; empty if both are unknown"),
    ] = ""
    region: Annotated[str, Meta(description="region from the configuration")] = ""
    labels: Annotated[dict[str, str], Meta(description="labels from the configuration")] = {}
    clock_ahead_seconds: Annotated[
        int | None,
        Meta(description="how far the clock of the audit is ahead of that of the API server; null if unknown"),
    ] = None

    @property
    def is_configured(self) -> bool:
        """Whether the configuration says which cluster this is."""
        return self.id != self.uid or bool(self.region or self.labels)


class Summary(msgspec.Struct, frozen=True):
    """The number of objects by action; each object counts once, with its worst finding."""

    deny: int
    mutate: int
    warn: int
    record: int
    allow: int

    @classmethod
    def of(cls, audited: Iterable[Audited]) -> Summary:
        """Count objects."""
        counts = Counter(owner.action for owner in audited)
        return cls(**{action.value: counts[action] for action in Action})


class AuditReport(msgspec.Struct, frozen=True, tag_field="schema", tag=SCHEMA):
    """One audit of a cluster or a dump by gpugate."""

    gpugate: Annotated[str, Meta(description="version of gpugate that wrote the document")]
    cluster: Cluster
    time: Annotated[dt.datetime, Meta(tz=True)]
    generation: Annotated[str, Meta(description="generation of the policy file")]
    target: Annotated[str, Meta(description="target versions of Kubernetes, Karpenter and KEDA")]
    coverage: Annotated[float, Meta(ge=0, le=1, description="evaluated share of what should be evaluated")]
    summary: Summary
    counts: Annotated[dict[str, int], Meta(description="kind -> number of objects that were read")]
    audited: Annotated[
        tuple[Audited, ...],
        Meta(
            description="worst first; objects without findings only with --include-passed, or if the use of a GPU is not busy"
        ),
    ] = msgspec.field(name="objects")
    not_evaluated: tuple[NotEvaluated, ...] = ()
    cost: Annotated[Cost | None, Meta(description="null with --no-cost, or if the nodes are unknown")] = None
    pending: Annotated[
        tuple[PendingPods, ...],
        Meta(description="Pods that wait for a node, without those whose owner has a finding of pods/unprovisionable"),
    ] = ()
    expired: Annotated[tuple[str, ...], Meta(description="expired exemptions")] = ()
    unused: Annotated[tuple[str, ...], Meta(description="exemptions that matched no finding")] = ()
    remarks: tuple[str, ...] = ()
    anonymized: Annotated[bool, Meta(description="whether names are pseudonyms")] = False
    usage: Annotated[Usage | None, Meta(description="null without --prometheus")] = None
    run_id: Annotated[str, Meta(description="id of the run; ids sort by the time of the run")] = ""
