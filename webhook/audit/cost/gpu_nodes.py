"""How many whole GPUs a node has, and what each device that it offers is of one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.accelerators import IMPLICIT_CLASS_PREFIX
from gpugate.policies.data.instance_types import ACCELERATOR_NAME, GPU_NAME
from gpugate.policies.data.mig_profiles import SHARED_SUFFIX, profile_of
from gpugate.webhook.audit.cost import slices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.webhook.audit.cost.prices import Prices
    from gpugate.webhook.audit.inventory import NodeRecord

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
_SPOT: Final = ("karpenter.sh/capacity-type", "spot")


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

    @property
    def is_spot(self) -> bool:
        """Whether the node is Spot capacity, which costs less than on demand."""
        return self.record.labels.get(_SPOT[0]) == _SPOT[1]

    def part(self, resource: str) -> Fraction:
        """Return what one device of a resource, or of a DRA device class, is of a GPU of this node."""
        name = resource.removeprefix(IMPLICIT_CLASS_PREFIX)
        return self.units[name] if name in self.units else part_of_gpu(name, self.record.instance_type)


def gpu_node(record: NodeRecord, prices: Prices) -> GpuNode | None:
    """Return what is known of a node's GPUs; None where it has none."""
    kind = record.instance_type
    owned = gpus_of_type(kind, prices.catalogue)
    units = _units(record, owned, prices.catalogue)
    offered = _offered(record.accelerators, units)
    gpus = Fraction(owned) if owned else offered
    if not gpus:
        return None
    price = prices.of(kind) if kind else None
    return GpuNode(
        record=record,
        model=model_of_type(kind, prices.catalogue),
        gpus=gpus,
        offered=min(offered, gpus) if any(record.accelerators.values()) else gpus,
        units=units,
        usd_per_gpu=None if price is None else price / gpus,
    )


def gpus_of_type(instance_type: str, catalogue: InstanceTypes) -> int:
    """Return how many accelerators an EC2 type has; 0 where it has none, a part of one, or is not known."""
    return max((_amount(instance_type, resource, catalogue) for resource in _WHOLE), default=0)


def model_of_type(instance_type: str, catalogue: InstanceTypes) -> str:
    """Return the name of the accelerators of an EC2 type; empty where it has none or is not known."""
    position = catalogue.positions.get(instance_type)
    if position is None:
        return ""
    return catalogue.label(GPU_NAME, position) or catalogue.label(ACCELERATOR_NAME, position)


def part_of_gpu(name: str, instance_type: str = "") -> Fraction:
    """Return what one device is of a GPU, from the name of its resource, its DRA class or itself.

    A time-sliced device is nothing, because its name does not tell how many share a GPU; its node may.
    """
    if name.endswith(SHARED_SUFFIX):
        return Fraction(0)
    profile = profile_of(name) or slices.named_profile(name)
    if profile:
        return slices.share(profile, instance_type)
    if name == NEURON_CORE:
        return Fraction(1, _USUAL_CORES)
    return slices.LEAST if name.startswith("mig") or "-mig-" in name else Fraction(1)


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
    rest = left - offers.get(NVIDIA, 0) * units.get(NVIDIA, 0)
    if offers.get(shared) and not units[shared] and rest > 0:
        units[shared] = rest / offers[shared]
    return units


def _as_labelled(labels: Mapping[str, str]) -> Fraction:
    """Return what one `nvidia.com/gpu` is where GFD says that GPUs are cut up alike, or shared under their own name.

    Source: NVIDIA k8s-device-plugin v0.20.0 (`docs/gpu-feature-discovery`): product and replicas.
    """
    profile = slices.named_profile(labels.get(_PRODUCT, ""))
    part = slices.share(profile) if profile else Fraction(1)
    return part * (_one_of(labels.get(_REPLICAS, "")) or 1)


def _one_of(replicas: str) -> Fraction:
    return Fraction(1, int(replicas)) if replicas.isdecimal() and int(replicas) else Fraction(0)


def _offered(offers: Mapping[str, int], units: Mapping[str, Fraction]) -> Fraction:
    views = [count * units[name] for name, count in offers.items() if name in _NEURON_NAMES]
    others = sum((count * units[name] for name, count in offers.items() if name not in _NEURON_NAMES), Fraction(0))
    return max(views, default=Fraction(0)) + others
