"""The accelerator manufacturers among the instance types of a pool, and how many accelerators its limits allow.

Source: aws/karpenter-provider-aws v1.14.1 (`pkg/apis/v1/labels.go`, `pkg/providers/instancetype/types.go`: which resource
a type of which manufacturer offers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.node_pools import AWS, limits, names_one_of
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.policies.data.instance_types import InstanceTypes, Scale
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import MatchingTypes
    from gpugate.policies.sdk.platform import Taint
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.quantity import Amount

_MANUFACTURERS: Final = (f"{AWS}/instance-gpu-manufacturer", f"{AWS}/instance-accelerator-manufacturer")
# The limit on the number of nodes; for a static pool its number of replicas.
NODES: Final = "nodes"
_BYTES_PER_MIB: Final = 2**20
_RESOURCES: Final = {
    "nvidia": ("nvidia.com/gpu",),
    "amd": ("amd.com/gpu",),
    "habana": ("habana.ai/gaudi",),
    "aws": ("aws.amazon.com/neuron", "aws.amazon.com/neuroncore"),
}


class Make(Struct, frozen=True):
    """Accelerators of one manufacturer.

    Attributes:
        manufacturer: as Karpenter's labels spell it.
        resources: the resources with which Pods request them; the first counts whole devices.
        types: the types of the pool with these accelerators, including parts of a device.
        offering: those of them that offer the first resource.
    """

    manufacturer: str
    resources: tuple[str, ...]
    types: int
    offering: int

    def of_type(self, position: int) -> Make:
        """Return the same make with only one of its types."""
        return Make(self.manufacturer, self.resources, 1 << position, 1 << position)


def makes(types: MatchingTypes) -> Iterator[Make]:
    """Yield the makes among the types of a pool, sorted by their number of types.

    Accelerators that Pods cannot request, such as Qualcomm's, are excluded.
    """
    catalogue = types.catalogue
    makes_of_pool = []
    for manufacturer, resources in _RESOURCES.items():
        having = types.known & _made_by(manufacturer, catalogue)
        if having:
            makes_of_pool.append(Make(manufacturer, resources, having, having & catalogue.offering(resources[0])))
    yield from sorted(makes_of_pool, key=lambda make: -make.types.bit_count())


def is_minor(make: Make, types: MatchingTypes) -> bool:
    """Tell whether a pool has a make only next to others: no value that it requires belongs only to this make.

    An example are the types with AMD GPUs in the category `g`. A make of half of the accelerated types is never minor.
    """
    few = 2 * make.types.bit_count() < types.accelerated.bit_count()
    return few and not names_one_of(types, _made_by(make.manufacturer, types.catalogue))


def taints_for(make: Make, ctx: AnyContext) -> tuple[Taint, ...]:
    """Return the taints of which one is enough; none if the platform configures no taint for these nodes."""
    return tuple(dict.fromkeys(taint for name in make.resources for taint in ctx.platform.taints_of(name)))


def reachable(make: Make, limits: Mapping[str, Amount], catalogue: InstanceTypes) -> int | None:
    """Return the most devices that limits on cpu, memory and nodes allow; None if they set no bound.

    A limit of 0 allows none.
    """
    bounds = {name: limits[name] for name in ("cpu", "memory", "nodes") if name in limits}
    if not bounds:
        return None
    most = 0
    for position in catalogue.positions_in(make.offering):
        nodes = min(int(limit // _needed(name, position, catalogue)) for name, limit in bounds.items())
        most = max(most, nodes * devices(make, position, catalogue))
    return most


def node_limits(pool: Field) -> dict[str, Amount]:
    """Return the limits of a NodePool by resource, with the replicas of a static pool as its limit of nodes."""
    amounts = limits(pool)
    replicas = pool["spec", "replicas"].integer
    if replicas is not None:
        amounts[NODES] = min(replicas, amounts.get(NODES, replicas))
    return amounts


def most_allowed(make: Make, allowed: Mapping[str, Amount], catalogue: InstanceTypes) -> int | None:
    """Return the most devices that all limits of a pool allow; None if they are unbounded."""
    bounds = [reachable(make, {name: amount for name, amount in allowed.items() if name != NODES}, catalogue)]
    bounds += [int(allowed[name]) for name in make.resources[:1] if name in allowed]
    if NODES in allowed:
        bounds.append(int(allowed[NODES]) * most_devices(make, catalogue))
    return min((bound for bound in bounds if bound is not None), default=None)


def devices(make: Make, position: int, catalogue: InstanceTypes) -> int:
    """Return the number of a make's devices that one type has."""
    return _amount(catalogue.allocatable[make.resources[0]], position)


def most_devices(make: Make, catalogue: InstanceTypes) -> int:
    """Return the number of devices of the largest type of a make."""
    return max((devices(make, position, catalogue) for position in catalogue.positions_in(make.offering)), default=0)


def _made_by(manufacturer: str, catalogue: InstanceTypes) -> int:
    """Return the types with accelerators of a manufacturer, which types other than EC2's show by their resources."""
    labelled = catalogue.of(_MANUFACTURERS[0], manufacturer) | catalogue.of(_MANUFACTURERS[1], manufacturer)
    return labelled | catalogue.offering(_RESOURCES[manufacturer][0])


def _needed(resource: str, position: int, catalogue: InstanceTypes) -> int:
    """Return the smallest amount of a limit that one node of a type uses: Pods can request only a part of its memory."""
    if resource == "nodes":
        return 1
    if resource == "cpu":
        return _amount(catalogue.capacity["cpu"], position)
    return _amount(catalogue.allocatable["memory"], position) * _BYTES_PER_MIB


def _amount(scale: Scale, position: int) -> int:
    return max((n for n, reach in zip(scale.numbers, scale.reach, strict=True) if reach >> position & 1), default=0)
