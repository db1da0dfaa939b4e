"""What an audit remembers of nodes, and of what asks for GPUs, so that it can be priced: small, and never whole Pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.webhook.audit.allocations import Allocation
    from gpugate.webhook.audit.room import Room
    from gpugate.webhook.report.located import ObjectName

# Phases in which a Pod holds nothing any more (`k8s.io/api` core/v1 PodPhase, v0.36).
FINISHED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices that a Pod asks for through a DRA claim.

    `claim` is the name of the ResourceClaim when the Pod names one that others may share, else empty: then the claim is
    made for this Pod alone.
    """

    device_class: str
    count: int
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """Accelerators that one Pod asks for.

    Attributes:
        resources: extended resource (`nvidia.com/gpu`, `nvidia.com/mig-1g.10gb`) -> how many, as the scheduler counts.
        devices: those asked for through DRA, of classes that hand out accelerators.
    """

    resources: Mapping[str, int] = field(default_factory=dict)
    devices: tuple[Devices, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.resources or self.devices)


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A Pod that asks for accelerators and has not finished.

    Attributes:
        owner: its top owner, as `Audited.object` names it.
        namespace: its namespace.
        name: its name.
        node: the node it is bound to; empty while it is pending, when it holds nothing.
        phase: `Pending`, `Running` or `Unknown`.
        demand: what it asks for.
        room: the CPU and memory that it reserves (`room.room_of_pod`); None where that was not looked at.
    """

    owner: ObjectName
    namespace: str
    name: str
    node: str
    phase: str
    demand: Demand
    room: Room | None = None


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node.

    Attributes:
        name: its name.
        node_pool: its Karpenter NodePool; empty where it has none.
        instance_type: its instance type; empty where no label says it.
        accelerators: accelerator resource -> how many it offers to Pods (`status.allocatable`, else its capacity).
        labels: its labels; of a node that offers no accelerators those that a price hangs on.
        room: the CPU, memory and Pods that it offers (`room.room_of_node`); None where that is not known.
    """

    name: str
    node_pool: str
    instance_type: str
    accelerators: Mapping[str, int]
    labels: Mapping[str, str]
    room: Room | None = None


@dataclass(frozen=True, slots=True)
class GpuTemplate:
    """A Pod template that asks for accelerators.

    Attributes:
        object: the workload that holds it.
        path: where in it, such as `spec.template`.
        demand: what each Pod made from it asks for.
    """

    object: ObjectName
    path: str
    demand: Demand


@dataclass(frozen=True, slots=True)
class Inventory:
    """What was seen while objects were judged.

    Attributes:
        pods: every Pod that asks for accelerators and has not finished, of excluded namespaces too.
        nodes: every node.
        templates: Pod templates that ask for accelerators.
        node_pools: NodePool objects without their status, as JSON.
        scalers: ScaledObjects, ScaledJobs and HorizontalPodAutoscalers without their status, as JSON.
        nodes_known: whether the nodes could be read; when not, nothing can be priced.
        pods_known: whether all Pods could be read; when not, what is held is a lower bound.
        used: node -> what all Pods bound to it reserve that have not finished, with GPUs or without.
        allocations: the devices that ResourceClaims were given (`allocations.allocation_of`).
    """

    pods: tuple[GpuPod, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    templates: tuple[GpuTemplate, ...] = ()
    node_pools: tuple[Mapping[str, Any], ...] = ()  # Any: the JSON edge
    scalers: tuple[Mapping[str, Any], ...] = ()
    nodes_known: bool = False
    pods_known: bool = False
    used: Mapping[str, Room] = field(default_factory=dict)
    allocations: tuple[Allocation, ...] = ()
