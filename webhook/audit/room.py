"""How much CPU and memory nodes have, and Pods reserve on them: what decides whether a GPU that is free can be used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk import quantity

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field

_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Room:
    """Millicores of CPU, MiB of memory, and Pods."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0

    def __add__(self, other: Room) -> Room:
        return Room(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def __sub__(self, other: Room) -> Room:
        return Room(self.cpu - other.cpu, self.memory - other.memory, self.pods - other.pods)

    def times(self, needed: Room) -> int:
        """Return how often what is needed fits in here."""
        pairs = ((self.cpu, needed.cpu), (self.memory, needed.memory), (self.pods, needed.pods))
        return max(0, min((have // need for have, need in pairs if need), default=0))


def room_of_node(node: Field) -> Room | None:
    """Read what a node offers to Pods; None where it says nothing of its CPU."""
    allocatable = node["status", "allocatable"] or node["status", "capacity"]
    if not allocatable["cpu"]:
        return None
    pods = _amount(allocatable["pods"], 1)
    return Room(_amount(allocatable["cpu"], 1000), _amount(allocatable["memory"], 1 / _MIB), math.floor(pods))


def room_of_pod(pod: Field) -> Room:
    """Add up what a Pod reserves, as the scheduler counts (`k8s.io/component-helpers/resource`, PodRequests, v0.36).

    Containers and sidecars together, or the largest init container with the sidecars before it, whichever is more; a
    request for the Pod as a whole wins; the overhead of its runtime comes on top. The API server has made a limit
    without a request into one.
    """
    spec = pod["spec"]
    return Room(_reserved(spec, "cpu", 1000), _reserved(spec, "memory", 1 / _MIB), 1)


def _reserved(spec: Field, resource: str, factor: float) -> int:
    running = sum(_amount(c["resources", "requests", resource], factor) for c in spec["containers"])
    sidecars = peak = 0
    for container in spec["initContainers"]:
        asked = _amount(container["resources", "requests", resource], factor)
        peak = max(peak, sidecars + asked)
        if container["restartPolicy"].text == "Always":
            sidecars += asked
    whole = spec["resources", "requests", resource]
    reserved = _amount(whole, factor) if whole else max(running + sidecars, peak)
    return reserved + _amount(spec["overhead", resource], factor)


def _amount(field: Field, factor: float) -> int:
    if not field:
        return 0
    try:
        return math.ceil(quantity.parse(field.value) * factor)
    except quantity.QuantityError:
        return 0
