"""What an audit finds: one record for each top owner, what could not be looked at, and what it costs."""

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
    """What would become of an object if it were created now, the worst of its findings."""

    BLOCK = "block"
    """It would be denied."""
    MUTATE = "mutate"
    """It would be stored changed."""
    WARN = "warn"
    """Whoever creates it would be warned."""
    RECORD = "record"
    """Something would be recorded, and nobody told."""
    COMPLY = "comply"
    """Nothing would be found."""


_WORST_FIRST: Final = {action: place for place, action in enumerate(Action)}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one policy found in one object, as `report.located.Located` shows it.

    Attributes:
        policy: its id.
        path: the field as people write it; empty for the object as a whole.
        message: what was found.
        stance: what it would cost.
        action: what it would do to the object.
        why: a sentence on what the pattern costs.
        hint: what to do.
        note: why it costs less than the policy's mode, such as an exemption.
        fix: how it can be mended, None where only people can.
        patches: the changes that the policy would make.
        template_of: the kind of the workload when a Pod template in it was judged.
        made: what has this, where it is not the object itself but something that it made, such as one of its Pods when
            these are not as its template says; `path` is then a path in that.
        related: other objects whose part in the cause is reported here.
        others: further objects that have a part in it, as `policies.sdk.findings.Violation` has them.
        follows: whether it is not reported where a finding at each of these is.
        covers: policies whose findings at the same path are left out for this one.
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
    made: ObjectName | None = None
    related: tuple[ObjectName, ...] = ()
    others: tuple[Other, ...] = ()
    follows: bool = False
    covers: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where it is: the path, after the name of what has it where that is not the object itself."""
        return ": ".join(part for part in (str(self.made or ""), self.path) if part)


@dataclass(frozen=True, slots=True)
class Held:
    """GPUs that running Pods hold.

    Attributes:
        resource: the extended resource, such as `nvidia.com/gpu`; a MIG profile counts as its share of a GPU.
        model: the GPU's name in the catalogue, such as `h100`; empty where the nodes do not say.
        gpus: how many.
        usd_per_hour: what they cost an hour, None where no price is known.
    """

    resource: str
    model: str
    gpus: float
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class Audited:
    """One object that people wrote: a workload with all its Pods, a NodePool, a ScaledObject, ...

    Attributes:
        object: which.
        uid: its uid; empty in a dump that does not say.
        pods: how many Pods of it run, itself included where it is one.
        held: the GPUs that those hold.
        findings: what policies found in it, or in its Pods when these were not made from its template.
        skipped: policy -> why it could not look.
    """

    object: ObjectName
    uid: str = ""
    pods: int = 0
    held: tuple[Held, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def action(self) -> Action:
        """What would become of it."""
        return min((finding.action for finding in self.findings), key=_WORST_FIRST.__getitem__, default=Action.COMPLY)


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """What could not be looked at: which kind or object, why, and how many objects if that is known."""

    what: str
    reason: str
    objects: int | None = None


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Something that can grow without a limit, and what it can cost an hour at worst; None: nobody can say."""

    object: ObjectName
    reason: str
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class Wasted:
    """GPUs of nodes that nobody can use because of the shape of what holds the others."""

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
    held: float
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """GPU money, each figure as its definition in `docs/audit.md` says; prices as of a day and place, in USD an hour."""

    prices: str
    at_risk: float
    held: float
    idle: float
    unbounded: tuple[Unbounded, ...] = ()
    wasted: tuple[Wasted, ...] = ()
    pools: tuple[PoolUse, ...] = ()
    unpriced_gpus: float = 0.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """What was audited: its name, the API server's version, as whom; or the dump's path."""

    name: str
    version: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """One audit.

    Attributes:
        cluster: what was looked at.
        time: when, with its zone.
        generation: which policy file was used, as the webhook's metric and log name it.
        target: the versions assumed.
        audited: every object judged, worst first, then by cost, then by name.
        counts: kind -> how many objects of it were read.
        not_evaluated: what could not be.
        coverage: the share of what should have been evaluated that was, from 0 to 1.
        cost: None when it was not asked for, or nothing is known of nodes.
        expired: exemptions that are over, and `unused` ones that matched nothing, in words.
        remarks: sentences about the run.
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
