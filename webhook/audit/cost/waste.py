"""GPUs that are idle because of the shape of what else is on their node."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING

from gpugate.policies.data.mig_profiles import profile_of
from gpugate.webhook.audit.cost.gpu_nodes import GpuNode, gpus_of_type, model_of_type
from gpugate.webhook.audit.inventory import Room
from gpugate.webhook.audit.model import Wasted
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpugate.webhook.audit.cost.prices import Prices
    from gpugate.webhook.audit.inventory import GpuPod, Inventory

_NODE_POOL_VERSION = "karpenter.sh/v1"
_NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What one GPU Pod needs: resources by name, and CPU and memory where they are known."""

    resources: frozenset[tuple[str, int]]
    room: Room | None

    def gpus(self, node: GpuNode) -> Fraction:
        """Return how many GPUs it takes of a node; 0 where the node offers other ones."""
        if not all(node.record.accelerators.get(name) for name, _ in self.resources):
            return _NOTHING
        return sum((count * node.part(name) for name, count in self.resources), _NOTHING)

    def filling(self, node: GpuNode, idle: Fraction, room: Room | None) -> Fraction:
        """Return how many idle GPUs of a node Pods of this shape could take."""
        gpus = self.gpus(node)
        if not gpus or gpus > idle:
            return _NOTHING
        fit = idle // gpus
        if room is not None and self.room is not None:
            fit = min(fit, room.times(self.room))
        return fit * gpus


class _Shortfall(Enum):
    UNDERFILLED = "Pods hold half of the GPUs or less"
    STARVED = "what is left of the node serves no idle GPU"
    UNCUT = "no slice covers all of the GPUs"


@dataclass(frozen=True, slots=True)
class _Loss:
    """How many GPUs of a node are wasted, and why; `allocated` are those that Pods hold."""

    node: GpuNode
    why: _Shortfall
    allocated: Fraction
    gpus: Fraction


def wasted(
    inventory: Inventory, nodes: Mapping[str, GpuNode], allocated: Mapping[str, Fraction], prices: Prices
) -> Iterator[Wasted]:
    """Yield what is wasted, by node pool and instance type (a node without a pool by itself), and why.

    Args:
        inventory: Pods, and what is reserved on nodes.
        nodes: the nodes with GPUs.
        allocated: node -> the GPUs of it that Pods hold.
        prices: for types with fewer of the same GPU.
    """
    shapes = {_shape(pod) for pod in inventory.pods if pod.demand.resources}
    waiting = {_shape(pod) for pod in inventory.pods if pod.demand.resources and not pod.node}
    groups: defaultdict[tuple[ObjectName, str, _Shortfall], list[_Loss]] = defaultdict(list)
    sizes: defaultdict[tuple[ObjectName, str], int] = defaultdict(int)
    for name, node in sorted(nodes.items()):
        where = (_object(node), node.record.instance_type)
        sizes[where] += 1
        of_node = allocated.get(name, _NOTHING)
        for loss in (_uncut(node, of_node), _idle(node, of_node, inventory.used.get(name), shapes, waiting)):
            if loss:
                groups[*where, loss.why].append(loss)
    for (obj, kind, _), members in sorted(groups.items(), key=lambda g: (str(g[0][0]), g[0][1], g[0][2].name)):
        yield _wasted(obj, members, sizes[obj, kind], prices)


def _shape(pod: GpuPod) -> _Shape:
    return _Shape(frozenset(pod.demand.resources.items()), pod.room)


def _idle(
    node: GpuNode, allocated: Fraction, used: Room | None, shapes: Iterable[_Shape], waiting: Iterable[_Shape]
) -> _Loss | None:
    idle = node.offered - allocated
    if idle <= 0 or not node.units:
        return None
    whole = node.record.room
    left = whole - (used or Room()) if whole is not None else None
    fitting = _best(node, idle, left, shapes)
    # On a node that no GPU Pod keeps, only what other Pods took the room of is wasted: it goes when it is empty.
    wanted = idle if allocated else _best(node, idle, whole, shapes)
    starved = wanted - fitting
    if allocated and allocated <= idle and fitting and not any(shape.filling(node, idle, left) for shape in waiting):
        return _Loss(node, _Shortfall.UNDERFILLED, allocated, idle)
    return _Loss(node, _Shortfall.STARVED, allocated, starved) if starved > 0 else None


def _best(node: GpuNode, idle: Fraction, room: Room | None, shapes: Iterable[_Shape]) -> Fraction:
    """Return how many idle GPUs the shape that uses most of them could take."""
    best = _NOTHING
    for shape in shapes:
        best = max(best, shape.filling(node, idle, room))
        if best == idle:
            break
    return best


def _uncut(node: GpuNode, allocated: Fraction) -> _Loss | None:
    """Return what the slices of a node leave over: four of 1g.20gb are 4 of the 7 compute slices of an H100."""
    is_cut = any(count and profile_of(name) for name, count in node.record.accelerators.items())
    return (
        _Loss(node, _Shortfall.UNCUT, allocated, node.gpus - node.offered)
        if is_cut and node.gpus > node.offered
        else None
    )


def _object(node: GpuNode) -> ObjectName:
    if node.record.node_pool:
        return ObjectName(_NODE_POOL_VERSION, "NodePool", "", node.record.node_pool)
    return ObjectName("v1", "Node", "", node.record.name)


def _wasted(obj: ObjectName, losses: list[_Loss], nodes: int, prices: Prices) -> Wasted:
    first = max(losses, key=lambda loss: (loss.gpus, loss.node.record.name))
    kind = first.node.record.instance_type or "unknown type"
    where = f"{len(losses)} of {nodes} nodes of {kind}" if obj.kind == "NodePool" else f"this node of {kind}"
    name = f" of {first.node.record.name}" if obj.kind == "NodePool" else ""
    example = "for example, " if name else ""
    detail = f" ({example}{_number(first.allocated)} of {_number(first.node.offered)} GPUs{name} are allocated)"
    if first.why is _Shortfall.UNDERFILLED:
        smaller = _smaller(first, prices)
        fewer = (
            f"; instance type {smaller} has {gpus_of_type(smaller, prices.catalogue)} of the same GPU"
            if smaller
            else ""
        )
        reason = f"Pods use at most half of the GPUs of {where}, and no pending Pod fits next to them{detail}{fewer}"
    elif first.why is _Shortfall.STARVED:
        reason = f"no GPU Pod of this cluster fits into the remaining capacity of {where}{detail}"
    else:
        covered = f"{_number(first.node.offered)} of {_number(first.node.gpus)} GPUs{name}"
        reason = f"the MIG layout of {where} does not use all of each GPU ({example}the slices cover {covered})"
    costs = [loss.gpus * usd for loss in losses if (usd := loss.node.usd_per_gpu) is not None]
    priced = len(costs) == len(losses)
    return Wasted(obj, reason, float(sum(loss.gpus for loss in losses)), float(sum(costs)) if priced else None)


def _smaller(loss: _Loss, prices: Prices) -> str:
    """Return the cheapest type with as many of the same GPU as are allocated, and fewer than the node has; or nothing."""
    catalogue = prices.catalogue
    fitting = []
    for position in catalogue.positions_in(catalogue.accelerated if loss.node.model else 0):
        name = catalogue.names[position]
        gpus, price = gpus_of_type(name, catalogue), prices.of(name)
        if price and loss.allocated <= gpus < loss.node.gpus and model_of_type(name, catalogue) == loss.node.model:
            fitting.append((price, name))
    return min(fitting)[1] if fitting else ""


def _number(amount: Fraction) -> str:
    return f"{float(amount):.3g}"
