"""The result of an audit: one record for each top-level owner, what was not evaluated, and the cost of GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from gpugate.policies.sdk.findings import Other, Patch, Patches, Replacement, Stance
    from gpugate.webhook.report.located import ObjectName


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


_WORST_FIRST: Final = {action: rank for rank, action in enumerate(Action)}


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of one policy in one object.

    Attributes:
        policy: the id of the policy; empty for a field of the wrong type.
        path: the field, such as `spec.replicas`; empty for the whole object.
        message: what is wrong.
        stance: the mode of the finding.
        action: what the webhook would do because of it.
        why: the consequence, in one sentence.
        hint: what to do.
        note: why the mode is lower than that of the policy, such as an exemption.
        fix: an edit that fixes the finding; None if there is no automatic fix.
        patches: the changes that a mutating policy would make.
        template_of: the kind of the workload, if the finding is in its Pod template.
        dependent: the object with the finding, if it is not the audited object but one that it owns, such as a Pod that
            differs from its template; `path` is then a path in it.
        related: other objects with the same cause, which is reported only here.
        others: further objects that share the cause, as in `policies.sdk.findings.Violation`.
        follows: whether findings at all of `others` replace this one.
        covers: policies whose findings at the same path this finding replaces.
    """

    policy: str
    path: str
    message: str
    stance: Stance
    action: Action
    why: str = ""
    hint: str = ""
    note: str = ""
    fix: Patches | Replacement | None = None
    patches: tuple[Patch, ...] = ()
    template_of: str = ""
    dependent: ObjectName | None = None
    related: tuple[ObjectName, ...] = ()
    others: tuple[Other, ...] = ()
    follows: bool = False
    covers: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The location: the path, after the name of the dependent if there is one."""
        return ": ".join(part for part in (str(self.dependent or ""), self.path) if part)


@dataclass(frozen=True, slots=True)
class AllocatedGpus:
    """GPUs that are allocated to Pods.

    Attributes:
        resource: the extended resource, such as `nvidia.com/gpu`; a MIG profile counts as its share of a GPU.
        model: the name of the GPU in the instance catalogue, such as `h100`; empty if unknown.
        gpus: the number of GPUs.
        usd_per_hour: their cost in USD per hour; None without a price.
    """

    resource: str
    model: str
    gpus: float
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class Audited:
    """A top-level owner: a workload with all its Pods, a NodePool, a ScaledObject, ...

    Attributes:
        object: the name of the object.
        uid: its uid; empty if a dump does not contain it.
        pods: the number of its unfinished Pods, including the object itself if it is one.
        allocated: the GPUs of these Pods.
        findings: its findings, and those of its Pods that differ from its template.
        skipped: policy -> why it was not evaluated.
    """

    object: ObjectName
    uid: str = ""
    pods: int = 0
    allocated: tuple[AllocatedGpus, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def action(self) -> Action:
        """What the webhook would do with it."""
        return min((finding.action for finding in self.findings), key=_WORST_FIRST.__getitem__, default=Action.ALLOW)


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """A kind or object that was not evaluated, the reason, and the number of objects if known."""

    what: str
    reason: str
    objects: int | None = None


@dataclass(frozen=True, slots=True)
class Unbounded:
    """An object whose GPUs have no limit, and its worst-case cost in USD per hour; None if unknown."""

    object: ObjectName
    reason: str
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class Wasted:
    """GPUs of nodes that no Pod can use because of the Pods that run beside them."""

    object: ObjectName
    reason: str
    gpus: float
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class PoolUse:
    """The GPUs of one NodePool (or of nodes without one) by instance type."""

    node_pool: str
    instance_type: str
    nodes: int
    gpus: float
    allocated: float
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of GPUs in USD per hour, as defined in `docs/audit.md`; `prices` names their source, date and region."""

    prices: str
    at_risk: float
    allocated: float
    idle: float
    unbounded: tuple[Unbounded, ...] = ()
    wasted: tuple[Wasted, ...] = ()
    pools: tuple[PoolUse, ...] = ()
    unpriced_gpus: float = 0.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """The audited cluster: its name or the paths of the dump, the version of the API server, and the user of the audit."""

    name: str
    version: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """One audit.

    Attributes:
        cluster: the audited cluster or dump.
        time: the time of the audit, with its time zone.
        generation: the generation of the policy file, as in the webhook's metrics and log.
        target: the target versions of Kubernetes, Karpenter and KEDA.
        audited: every evaluated object, sorted by action, then by cost, then by name.
        counts: kind -> the number of objects that were read.
        not_evaluated: what was not evaluated.
        coverage: the evaluated share of what should be evaluated, from 0 to 1.
        cost: the cost of GPUs; None with `--no-cost`, or if the nodes are unknown.
        expired: expired exemptions, as text for the user.
        unused: exemptions that matched no finding, as text for the user.
        remarks: further notes for the user.
    """

    cluster: Cluster
    time: dt.datetime
    generation: str
    target: str
    audited: tuple[Audited, ...]
    counts: Mapping[str, int]
    not_evaluated: tuple[NotEvaluated, ...] = ()
    coverage: float = 1.0
    cost: Cost | None = None
    expired: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
