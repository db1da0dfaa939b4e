"""A simulation, and its JSON document `gpugate.dev/simulation/v1`: what each owner gets by the current and the candidate policies.

The records are the document, as in `audit/model.py`. Within a version, fields are only added; readers ignore unknown fields.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gpugate.webhook.audit.model import Action, NotEvaluated
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA: Final = "gpugate.dev/simulation/v1"
_ORDER: Final = {action: rank for rank, action in enumerate(Action)}


class PolicyChange(msgspec.Struct, frozen=True):
    """What one policy does with an owner, before and after."""

    policy: Annotated[str, Meta(description="id of the policy; empty for a field of the wrong type")]
    current: Action
    candidate: Action
    message: Annotated[
        str, Meta(description="the finding by the candidate policies; by the current ones if they alone have one")
    ] = ""
    hint: str = ""

    @property
    def newly_denied(self) -> bool:
        """Whether only the candidate denies because of the policy."""
        return self.candidate is Action.DENY and self.current is not Action.DENY

    @property
    def newly_allowed(self) -> bool:
        """Whether only the current policies deny because of the policy."""
        return self.current is Action.DENY and self.candidate is not Action.DENY


class Requests(msgspec.Struct, frozen=True):
    """The requests of one owner in the recorded time."""

    people: Annotated[int, Meta(description="requests of users")] = 0
    controllers: Annotated[
        int, Meta(description="requests of ServiceAccounts, nodes and Kubernetes' own components")
    ] = 0
    operations: tuple[str, ...] = ()
    first: dt.datetime | None = None
    last: dt.datetime | None = None

    @property
    def total(self) -> int:
        """All requests."""
        return self.people + self.controllers


class Change(msgspec.Struct, frozen=True):
    """An owner that the candidate treats differently: a workload with its Pods, or an object without an owner."""

    object: ObjectName
    source: Annotated[
        str,
        Meta(
            description="`requests` for recorded requests, `shadow` for requests that servers evaluated, `stored` for a dump"
        ),
    ]
    current: Annotated[Action, Meta(description="the worst decision of the current policies")]
    candidate: Annotated[Action, Meta(description="the worst decision of the candidate policies")]
    policies: tuple[PolicyChange, ...]
    requests: Requests = Requests()
    pods: Annotated[int, Meta(description="its unfinished Pods in the dump")] = 0
    gpus: Annotated[float, Meta(description="GPUs that are allocated to them")] = 0.0
    usd_per_hour: Annotated[float | None, Meta(description="the cost of these GPUs; null if unknown")] = None

    @property
    def newly_denied(self) -> bool:
        """Whether only the candidate denies the owner."""
        return self.candidate is Action.DENY and self.current is not Action.DENY

    @property
    def newly_allowed(self) -> bool:
        """Whether only the current policies deny the owner."""
        return self.current is Action.DENY and self.candidate is not Action.DENY


class NodeRisk(msgspec.Struct, frozen=True):
    """Pods of one node that controllers would not create again after the node is removed, because they are newly denied."""

    node: str
    node_pool: Annotated[str, Meta(description="empty for a node without one")]
    pods: Annotated[int, Meta(description="Pods with GPUs or without")]
    owners: tuple[ObjectName, ...]
    gpus: Annotated[float, Meta(description="GPUs that are allocated to these Pods")] = 0.0
    usd_per_hour: Annotated[float | None, Meta(description="the cost of these GPUs; null if unknown")] = None


class DisruptionWindow(msgspec.Struct, frozen=True):
    """When the budgets of a NodePool next allow Karpenter to disrupt nodes with Pods."""

    opens: Annotated[dt.datetime | None, Meta(description="null if they do not in the simulated days")]
    closes: Annotated[
        dt.datetime | None, Meta(description="null if they allow it to the end of the simulated days")
    ] = None
    nodes: Annotated[int | None, Meta(description="nodes at once when it opens; null for any number")] = None


class PoolRisk(msgspec.Struct, frozen=True):
    """The nodes of one NodePool with Pods that would not come back."""

    node_pool: Annotated[str, Meta(description="empty for nodes without one")]
    nodes: int
    pods: int
    gpus: float
    usd_per_hour: float | None
    window: Annotated[DisruptionWindow | None, Meta(description="null if the NodePool is unknown")] = None


class ScheduledRuns(msgspec.Struct, frozen=True):
    """The next runs of an owner with a schedule, whose Pods are newly denied."""

    object: ObjectName
    schedules: tuple[str, ...]
    time_zone: Annotated[str, Meta(description="empty if the object names none; then UTC is assumed")]
    suspended: bool
    runs: Annotated[int | None, Meta(description="in the simulated days; null if a schedule cannot be read")]
    first: dt.datetime | None = None
    gpus: Annotated[float | None, Meta(description="GPUs of one run; null if the number of its Pods is unknown")] = None


class ScaleUp(msgspec.Struct, frozen=True):
    """An autoscaler of an owner whose Pods are newly denied."""

    object: ObjectName
    scaler: Annotated[ObjectName, Meta(description="the autoscaler, or the owner itself if it scales its own Pods")]
    pods: Annotated[int, Meta(description="its Pods now")]
    most_pods: Annotated[int | None, Meta(description="its Pods at the maximum; null without a maximum")]
    most_gpus: Annotated[float | None, Meta(description="GPUs of its Pods at the maximum; null without a maximum")]


class RecordedKind(msgspec.Struct, frozen=True):
    """The workloads of one kind that the recorded time contains."""

    kind: str
    total: Annotated[int, Meta(description="stored workloads, without suspended CronJobs")]
    recorded: Annotated[int, Meta(description="those that created Pods, or of CronJobs Jobs, in the recorded time")]
    missing: Annotated[tuple[str, ...], Meta(description="namespace/name of the first ten others")] = ()


class Coverage(msgspec.Struct, frozen=True):
    """What the simulation is based on."""

    requests: Annotated[int, Meta(description="recorded requests")] = 0
    evaluated: Annotated[int, Meta(description="requests that were evaluated, of kinds that policies evaluate")] = 0
    not_evaluated: Annotated[dict[str, int], Meta(description="reason -> requests")] = {}
    stored: Annotated[int, Meta(description="objects of dumps that were evaluated")] = 0
    first: dt.datetime | None = None
    last: dt.datetime | None = None
    workloads: Annotated[
        tuple[RecordedKind, ...],
        Meta(description="CronJobs, DaemonSets and StatefulSets of the dumps or the cluster, by kind"),
    ] = ()

    @property
    def days(self) -> float:
        """The recorded time in days."""
        return (self.last - self.first).total_seconds() / 86_400 if self.first and self.last else 0.0


class Totals(msgspec.Struct, frozen=True):
    """The newly denied owners; each counts once, whatever shows it."""

    owners: int = 0
    people: Annotated[int, Meta(description="their recorded requests that users sent")] = 0
    controllers: Annotated[int, Meta(description="their recorded requests that controllers sent")] = 0
    per_day: Annotated[float | None, Meta(description="their requests a day; null for less than an hour")] = None
    gpus: Annotated[float, Meta(description="GPUs that are allocated to them")] = 0.0
    usd_per_hour: Annotated[float | None, Meta(description="the cost of these GPUs; null if unknown")] = None


class PolicyTotals(msgspec.Struct, frozen=True):
    """The owners that one policy decides differently."""

    policy: Annotated[str, Meta(description="id of the policy; empty for a field of the wrong type")]
    denied: Annotated[Totals, Meta(description="owners with a finding of the policy that is newly denied")]
    allowed: Annotated[int, Meta(description="owners that only the current policies deny because of it")] = 0
    others: Annotated[int, Meta(description="owners with other changes")] = 0


class Confidence(msgspec.Struct, frozen=True):
    """How far the simulation can be relied on."""

    level: Literal["high", "medium", "low"]
    reasons: tuple[str, ...] = ()


class ProposedExemption(msgspec.Struct, frozen=True):
    """An exemption with which the candidate denies some newly denied owners no longer."""

    policies: tuple[str, ...]
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    expires: str
    owner: Annotated[str, Meta(description="empty without --exemption-owner")] = ""
    namespaces: tuple[str, ...] = ()
    reason: str = ""


class Simulation(msgspec.Struct, frozen=True, tag=SCHEMA, tag_field="schema"):
    """What a candidate policy file would change."""

    gpugate: str
    current: Annotated[str, Meta(description="the current policy file")]
    candidate: Annotated[str, Meta(description="the candidate policy file")]
    sources: tuple[str, ...]
    coverage: Coverage
    changes: tuple[Change, ...]
    confidence: Confidence = Confidence("low")
    denied: Totals = Totals()
    policies: Annotated[tuple[PolicyTotals, ...], Meta(description="most newly denied owners first")] = ()
    exemptions: tuple[ProposedExemption, ...] = ()
    nodes: tuple[NodeRisk, ...] = ()
    pools: tuple[PoolRisk, ...] = ()
    runs: Annotated[tuple[ScheduledRuns, ...], Meta(description="soonest first")] = ()
    scale_ups: tuple[ScaleUp, ...] = ()
    time: Annotated[dt.datetime | None, Meta(description="when the simulation began")] = None
    days: Annotated[int, Meta(description="the simulated days of runs and disruption windows")] = 7
    gaps: Annotated[
        tuple[NotEvaluated, ...],
        Meta(description="kinds and objects that could not be read; the others were evaluated"),
    ] = ()
    remarks: tuple[str, ...] = ()

    @property
    def newly_denied(self) -> tuple[Change, ...]:
        """The owners that only the candidate denies."""
        return tuple(change for change in self.changes if change.newly_denied)

    @property
    def denied_owners(self) -> int:
        """The number of newly denied owners; one that both a log and a dump show counts once."""
        return len({change.object for change in self.newly_denied})

    @property
    def newly_allowed(self) -> tuple[Change, ...]:
        """The owners that only the current policies deny."""
        return tuple(change for change in self.changes if change.newly_allowed)


def severity(action: Action) -> int:
    """Return the rank of an action; lower is stricter."""
    return _ORDER[action]


def worst_first(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Sort new denials first, then by cost, by the number of requests, and by name."""

    def rank(change: Change) -> tuple[int, float, float, int, str]:
        group = 0 if change.newly_denied else 2 if severity(change.candidate) > severity(change.current) else 1
        return group, -(change.usd_per_hour or 0), -change.gpus, -change.requests.total, str(change.object)

    return tuple(sorted(changes, key=rank))
