"""Small clusters for tests of what GPUs cost: `node(...)`, `pod(...)`, `inventory(...)`, `costed(...)`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.webhook.audit.cost.prices import Prices
from gpugate.webhook.audit.cost.summary import Costed, cost_of
from gpugate.webhook.audit.inventory import Demand, Devices, GpuPod, Inventory, NodeRecord
from gpugate.webhook.audit.model import Action, Audited, Finding
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.webhook.audit.inventory import Room

GPU = "nvidia.com/gpu"
VLLM = ObjectName("apps/v1", "Deployment", "serving", "vllm")
TRAINER = ObjectName("batch/v1", "Job", "ml", "finetune")


@functools.cache
def list_prices() -> Prices:
    return Prices(load_instance_types())


def node(
    name: str = "n1",
    instance_type: str = "p5.48xlarge",
    pool: str = "gpu",
    labels: dict[str, str] | None = None,
    room: Room | None = None,
    **accelerators: int,
) -> NodeRecord:
    """Return a node; `gpu=8` is eight of `nvidia.com/gpu`."""
    offers = {_NAMES.get(key, key): count for key, count in accelerators.items()}
    return NodeRecord(name, pool, instance_type, offers, labels or {}, room)


_NAMES = {
    "gpu": GPU,
    "neuron": "aws.amazon.com/neuron",
    "neuroncore": "aws.amazon.com/neuroncore",
    "amd": "amd.com/gpu",
}


def pod(
    gpus: int = 1,
    *,
    on: str = "n1",
    owner: ObjectName = VLLM,
    name: str = "p",
    resource: str = GPU,
    devices: tuple[Devices, ...] = (),
    room: Room | None = None,
) -> GpuPod:
    demand = Demand({resource: gpus} if gpus else {}, devices)
    return GpuPod(owner, owner.namespace, name, on, "Running" if on else "Pending", demand, room)


def inventory(nodes: Iterable[NodeRecord], pods: Iterable[GpuPod] = (), **others: Any) -> Inventory:
    return Inventory(pods=tuple(pods), nodes=tuple(nodes), nodes_known=True, pods_known=True, **others)


def blocked(name: ObjectName, policy: str = "pods/missing-gpu-toleration") -> Audited:
    return Audited.of(name, (Finding(policy, "spec", "is wrong", "enforce", Action.DENY),))


def costed(seen: Inventory, audited: Iterable[Audited] = (), prices: Prices | None = None) -> Costed:
    found = cost_of(seen, audited, prices or list_prices(), Platform(), Target())
    assert found is not None
    return found
