"""A simulation, and its JSON document `gpugate.dev/simulation/v1`: what each owner gets by the current and the candidate policies.

The records are the document, as in `audit/model.py`. Within a version, fields are only added; readers ignore unknown fields.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from gpugate.webhook.audit.model import Action
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
    """GPU Pods of one node that do not come back after the node is removed, because their owner is newly denied."""

    node: str
    node_pool: Annotated[str, Meta(description="empty for a node without one")]
    pods: int
    owners: tuple[ObjectName, ...]


class Coverage(msgspec.Struct, frozen=True):
    """What the simulation is based on."""

    requests: Annotated[int, Meta(description="recorded requests")] = 0
    evaluated: Annotated[int, Meta(description="requests that were evaluated, of kinds that policies evaluate")] = 0
    not_evaluated: Annotated[dict[str, int], Meta(description="reason -> requests")] = {}
    stored: Annotated[int, Meta(description="objects of dumps that were evaluated")] = 0
    first: dt.datetime | None = None
    last: dt.datetime | None = None
    cron_jobs: Annotated[int, Meta(description="CronJobs of the dumps")] = 0
    cron_jobs_seen: Annotated[int, Meta(description="those of which a Job was created in the recorded time")] = 0

    @property
    def days(self) -> float:
        """The recorded time in days."""
        return (self.last - self.first).total_seconds() / 86_400 if self.first and self.last else 0.0


class Simulation(msgspec.Struct, frozen=True, tag=SCHEMA, tag_field="schema"):
    """What a candidate policy file would change."""

    gpugate: str
    current: Annotated[str, Meta(description="the current policy file")]
    candidate: Annotated[str, Meta(description="the candidate policy file")]
    sources: tuple[str, ...]
    coverage: Coverage
    changes: tuple[Change, ...]
    nodes: tuple[NodeRisk, ...] = ()
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
