"""Count the GPUs of nodes, the share of a GPU that each device is, and the Pods that hold them.

The shares of one GPU never add up to more than one: 3g.40gb and 4g.40gb are one H100. Counted by memory, the rounded names
of profiles would add up to more (two of 3g.71gb in 141 GB), and so would counting how many of one profile fit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.accelerators import IMPLICIT_CLASS_PREFIX
from gpugate.policies.data.instance_types import ACCELERATOR_NAME, GPU_NAME
from gpugate.policies.data.mig_profiles import SHARED_SUFFIX, MigGpu, gpus_with, near_miss, profile_of
from gpugate.policies.sdk.gpu_demand import is_amount, is_virtual
from gpugate.webhook.audit.cost.prices import ON_DEMAND
from gpugate.webhook.audit.model import AllocatedGpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.catalogue import InstanceType
    from gpugate.webhook.audit.cost.prices import Prices
    from gpugate.webhook.audit.inventory import Device, Devices, GpuPod, Inventory, NodeRecord
    from gpugate.webhook.report.located import ObjectName

_COMPUTE: Final = re.compile(r"(\d+)g\.")
# The slice named in what GFD says of a GPU that is cut up alike, `NVIDIA-H100-80GB-HBM3-MIG-1g.10gb`, and in the name of a
# DRA device or class, `gpu-0-mig-1g10gb-19-0`, `mig-1g.10gb.nvidia.com`.
_NAMED: Final = re.compile(r"mig-(\d+g\.?\d+gb)(?![0-9a-z])", re.IGNORECASE)
MOST_SLICES: Final = 7
LEAST: Final = Fraction(1, MOST_SLICES)


def share(profile: str, instance_type: str = "") -> Fraction:
    """Return a slice's share of its GPU.

    Args:
        profile: such as `1g.10gb` or `1g.10gb+me`.
        instance_type: where the GPU is; without it, the GPU with the most compute slices among those that can be cut so.

    One that no GPU has is the smallest slice there is.
    """
    family = instance_type.partition(".")[0]
    gpus = gpus_with(profile)
    fitting = [gpu for gpu in gpus if family in gpu.families] or list(gpus)
    if not fitting:
        return LEAST
    return Fraction(_compute(profile), max(map(_slices, fitting)))


def named_profile(text: str) -> str | None:
    """Return the profile in the name of a product, a DRA device or a device class; None where it tells none."""
    match = _NAMED.search(text)
    if not match:
        return None
    profile = match[1].lower()
    return profile if "." in profile else near_miss(profile) or profile


def _slices(gpu: MigGpu) -> int:
    return max(map(_compute, gpu.profiles))


def _compute(profile: str) -> int:
    match = _COMPUTE.match(profile)
    return int(match[1]) if match else 1


NVIDIA: Final = "nvidia.com/gpu"
NEURON: Final = "aws.amazon.com/neuron"
NEURON_CORE: Final = "aws.amazon.com/neuroncore"
_WHOLE: Final = (NVIDIA, "amd.com/gpu", NEURON, "habana.ai/gaudi")
# Other names of the same devices: the Neuron device plugin offers each device also as its cores.
_NEURON_NAMES: Final = frozenset({NEURON, NEURON_CORE, "aws.amazon.com/neurondevice"})
# Inferentia2 and Trainium1 (`instance_types.json`); where the type is not known.
_USUAL_CORES: Final = 2
_REPLICAS: Final = f"{NVIDIA}.replicas"
_PRODUCT: Final = "nvidia.com/gpu.product"
_CAPACITY_LABEL: Final = "karpenter.sh/capacity-type"


@dataclass(frozen=True, slots=True)
class GpuNode:
    """A node with accelerators.

    Attributes:
        record: the node.
        model: the name of its GPUs in the catalogue; empty where its type is not known.
        gpus: how many it has, as its type says; where that is not known, as many as it offers.
        offered: how many of them Pods can have. A node that offers none by a device plugin, as with DRA, offers all.
        units: resource -> what one of it is of a GPU, for those that the node offers.
        usd_per_gpu: what one GPU costs an hour: the node's price, divided by its GPUs; None where no price is known.
    """

    record: NodeRecord
    model: str
    gpus: Fraction
    offered: Fraction
    units: Mapping[str, Fraction]
    usd_per_gpu: Fraction | None

    def part(self, resource: str) -> Fraction:
        """Return what one device of a resource, or of a DRA device class, is of a GPU of this node."""
        name = resource.removeprefix(IMPLICIT_CLASS_PREFIX)
        return self.units[name] if name in self.units else part_of_gpu(name, self.record.instance_type)


def gpu_node(record: NodeRecord, prices: Prices) -> GpuNode | None:
    """Return what is known of a node's GPUs; None where it has none."""
    kind = record.instance_type
    described = prices.types.get(kind)
    owned = gpus_of_type(kind, prices.catalogue) or (_devices_of(described) if described else 0)
    units = _units(record, owned, prices.catalogue)
    offered = _offered(record.accelerators, units)
    gpus = Fraction(owned) if owned else offered
    if not gpus:
        return None
    price = prices.of(kind, capacity_of(record)) if kind else None
    return GpuNode(
        record=record,
        model=model_of_type(kind, prices.catalogue) or (_product_of(described) if described else ""),
        gpus=gpus,
        offered=min(offered, gpus) if any(record.accelerators.values()) else gpus,
        units=units,
        usd_per_gpu=None if price is None else price / gpus,
    )


def capacity_of(record: NodeRecord) -> str:
    """Return the capacity type of a node; on-demand without the label of Karpenter."""
    return record.labels.get(_CAPACITY_LABEL, ON_DEMAND)


def gpus_of_type(instance_type: str, catalogue: InstanceTypes) -> int:
    """Return how many accelerators an EC2 type has; 0 where it has none, a part of one, or is not known."""
    return max((_amount(instance_type, resource, catalogue) for resource in _WHOLE), default=0)


def model_of_type(instance_type: str, catalogue: InstanceTypes) -> str:
    """Return the name of the accelerators of an EC2 type; empty where it has none or is not known."""
    position = catalogue.positions.get(instance_type)
    if position is None:
        return ""
    return catalogue.label(GPU_NAME, position) or catalogue.label(ACCELERATOR_NAME, position)


def _devices_of(described: InstanceType) -> int:
    """Return how many whole devices a type of the platform offers through DRA alone; its device plugins count otherwise."""
    return sum(devices.count for devices in described.devices if not devices.profile)


def _product_of(described: InstanceType) -> str:
    labelled = described.labels.get(_PRODUCT, "")
    return labelled or next((devices.product for devices in described.devices if devices.product), "")


def part_of_gpu(name: str, instance_type: str = "") -> Fraction:
    """Return what one device is of a GPU, from the name of its resource, its DRA class or itself.

    A time-sliced device or a virtual GPU is nothing, because its name does not tell how many share a GPU; its node may. So is an amount of
    memory or cores, which stands beside the device.
    """
    if name.endswith(SHARED_SUFFIX) or is_amount(name) or is_virtual(name):
        return Fraction(0)
    profile = profile_of(name) or named_profile(name)
    if profile:
        return share(profile, instance_type)
    if name == NEURON_CORE:
        return Fraction(1, _USUAL_CORES)
    return LEAST if name.startswith("mig") or "-mig-" in name else Fraction(1)


def _amount(instance_type: str, resource: str, catalogue: InstanceTypes) -> int:
    position = catalogue.positions.get(instance_type)
    scale = catalogue.allocatable.get(resource)
    if position is None or scale is None:
        return 0
    reached = (n for n, types in zip(scale.numbers, scale.reach, strict=True) if types >> position & 1)
    return max(reached, default=0)


def _units(record: NodeRecord, owned: int, catalogue: InstanceTypes) -> dict[str, Fraction]:
    kind, offers = record.instance_type, record.accelerators
    units = {name: part_of_gpu(name, kind) for name in offers}
    cores = _amount(kind, NEURON_CORE, catalogue)
    if cores and owned:
        units[NEURON_CORE] = Fraction(owned, cores)
    if offers.get(NVIDIA):
        units[NVIDIA] = _as_labelled(record.labels)
    for name in offers:
        if name.endswith(SHARED_SUFFIX):
            whole = name.removesuffix(SHARED_SUFFIX)
            units[name] = part_of_gpu(whole, kind) * _one_of(record.labels.get(f"{whole}.replicas", ""))
    # Where no label tells: the type's GPUs that are not cut into slices, spread over all that is offered of them.
    left = owned - sum((count * units[name] for name, count in offers.items() if profile_of(name)), Fraction(0))
    for whole in (NVIDIA, "amd.com/gpu", "habana.ai/gaudi"):
        count = offers.get(whole, 0)
        if count * units.get(whole, 0) > left > 0:
            units[whole] = left / count
    shared = NVIDIA + SHARED_SUFFIX
    remainder = left - offers.get(NVIDIA, 0) * units.get(NVIDIA, 0)
    if offers.get(shared) and not units[shared] and remainder > 0:
        units[shared] = remainder / offers[shared]
    return units


def _as_labelled(labels: Mapping[str, str]) -> Fraction:
    """Return what one `nvidia.com/gpu` is where GFD says that GPUs are cut up alike, or shared under their own name.

    Source: NVIDIA k8s-device-plugin v0.20.0 (`docs/gpu-feature-discovery`): product and replicas.
    """
    profile = named_profile(labels.get(_PRODUCT, ""))
    part = share(profile) if profile else Fraction(1)
    return part * (_one_of(labels.get(_REPLICAS, "")) or 1)


def _one_of(replicas: str) -> Fraction:
    return Fraction(1, int(replicas)) if replicas.isdecimal() and int(replicas) else Fraction(0)


def _offered(offers: Mapping[str, int], units: Mapping[str, Fraction]) -> Fraction:
    views = [count * units[name] for name, count in offers.items() if name in _NEURON_NAMES]
    others = sum((count * units[name] for name, count in offers.items() if name not in _NEURON_NAMES), Fraction(0))
    return max(views, default=Fraction(0)) + others


@dataclass(frozen=True, slots=True)
class Holding:
    """What one Pod holds of one resource, as GPUs; `node` is None where its node is not known."""

    pod: GpuPod
    resource: str
    gpus: Fraction
    node: GpuNode | None

    @property
    def usd(self) -> Fraction | None:
        """What it costs an hour, None where no price is known."""
        return None if self.node is None or self.node.usd_per_gpu is None else self.gpus * self.node.usd_per_gpu


def holdings(inventory: Inventory, nodes: Mapping[str, GpuNode]) -> Iterator[Holding]:
    """Yield what each Pod that is bound to a node holds.

    A device of a ResourceClaim that several Pods use, or that was given to several claims, is split evenly among them.
    What a claim was given counts; where that is not known, what it asks for.
    """
    bound = tuple(pod for pod in inventory.pods if pod.node)
    for pod in bound:
        node = nodes.get(pod.node)
        for resource, count in pod.demand.resources.items():
            part = node.part(resource) if node else part_of_gpu(resource)
            if count * part:
                yield Holding(pod, resource, count * part, node)
    yield from _claimed(inventory, bound, nodes)


def _claimed(inventory: Inventory, bound: Iterable[GpuPod], nodes: Mapping[str, GpuNode]) -> Iterator[Holding]:
    claiming = {(pod.namespace, pod.name): pod for pod in bound if pod.demand.devices}
    users_by_device, answered = _allocated(inventory, claiming)
    for device, users in users_by_device.items():
        for key in sorted(users):
            node = nodes.get(claiming[key].node)
            part = _device_part(device, node)
            yield Holding(claiming[key], device.device_class or device.driver, part * users[key], node)
    pods_by_claim: defaultdict[tuple[str, Devices], list[GpuPod]] = defaultdict(list)
    for key, pod in sorted(claiming.items(), key=lambda item: item[0]):
        for number, devices in enumerate(pod.demand.devices) if key not in answered else ():
            own = "" if devices.claim else f"{pod.name}/{number}"
            pods_by_claim[f"{pod.namespace}/{own}", devices].append(pod)
    for (_, devices), sharing in pods_by_claim.items():
        for pod in sharing:
            node = nodes.get(pod.node)
            part = node.part(devices.device_class) if node else part_of_gpu(devices.device_class)
            yield Holding(pod, devices.device_class, Fraction(devices.count) * part / len(sharing), node)


def _allocated(
    inventory: Inventory, claiming: Mapping[tuple[str, str], GpuPod]
) -> tuple[dict[Device, dict[tuple[str, str], Fraction]], set[tuple[str, str]]]:
    """Return device -> Pod -> its part of the device; and the Pods for whose claims it is known what they were given."""
    users: defaultdict[Device, defaultdict[tuple[str, str], Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    answered: set[tuple[str, str]] = set()
    for allocation in inventory.allocations:
        keys = sorted({(allocation.namespace, name) for name in allocation.pods} & claiming.keys())
        answered.update(keys)
        for device in allocation.devices:
            for key in keys:
                users[device][key] += Fraction(1, len(keys))
    whole = {
        device: {key: part / sum(parts.values()) for key, part in parts.items()} for device, parts in users.items()
    }
    return whole, answered


def _device_part(device: Device, node: GpuNode | None) -> Fraction:
    kind = node.record.instance_type if node else ""
    if "-mig-" in device.name:
        profile = named_profile(device.name)
        return share(profile, kind) if profile else LEAST
    return part_of_gpu(device.device_class or device.driver, kind)


def allocated_by_owner(holding: Iterable[Holding]) -> dict[ObjectName, tuple[AllocatedGpus, ...]]:
    """Add up by top owner: one record for each resource and model, those without a price apart."""
    owners: defaultdict[ObjectName, list[Holding]] = defaultdict(list)
    for allocation in holding:
        owners[allocation.pod.owner].append(allocation)
    return {owner: tuple(_records(of_owner)) for owner, of_owner in owners.items()}


def _records(holding: Sequence[Holding]) -> Iterator[AllocatedGpus]:
    sums: defaultdict[tuple[str, str, bool], list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for allocation in holding:
        usd = allocation.usd
        amounts = sums[allocation.resource, allocation.node.model if allocation.node else "", usd is not None]
        amounts[0] += allocation.gpus
        amounts[1] += usd or 0
    for (resource, model, priced), (gpus, usd) in sorted(sums.items()):
        yield AllocatedGpus(resource, model, float(gpus), float(usd) if priced else None)
