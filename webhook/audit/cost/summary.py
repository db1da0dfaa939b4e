"""Compute the cost of a cluster's GPUs, as defined in `audit.words`."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from gpugate.webhook.audit.cost.gpu_nodes import GpuNode, Holding, allocated_by_owner, capacity_of, gpu_node, holdings
from gpugate.webhook.audit.cost.gpu_pools import gpu_pools, unbounded_pools
from gpugate.webhook.audit.cost.gpu_use import pod_uses, summed
from gpugate.webhook.audit.cost.prices import PLACE
from gpugate.webhook.audit.cost.scalers import POLICY, supplies_of, unbounded_scalers
from gpugate.webhook.audit.cost.waste import wasted
from gpugate.webhook.audit.model import Action, Cost, PoolUse, Spend, Unbounded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from gpugate.policies.sdk.platform import Platform, Target
    from gpugate.webhook.audit.cost.gpu_use import Measured, PodUse
    from gpugate.webhook.audit.cost.prices import Prices
    from gpugate.webhook.audit.inventory import GpuPod, Inventory
    from gpugate.webhook.audit.model import AllocatedGpus, Audited, Use
    from gpugate.webhook.report.located import ObjectName

_Group = tuple[Literal["team", "namespace", "pool"], str]
_NOTHING = Fraction(0)
_REGION = "topology.kubernetes.io/region"


@dataclass(frozen=True, slots=True)
class Costed:
    """What GPUs cost, what each object's Pods hold and how they use it, and sentences about what the figures leave out.

    `teams` is the team of each object whose Pods hold GPUs.
    """

    cost: Cost
    allocated: Mapping[ObjectName, tuple[AllocatedGpus, ...]]
    remarks: tuple[str, ...]
    uses: tuple[PodUse, ...] = ()
    teams: Mapping[ObjectName, str] = field(default_factory=dict)


def cost_of(
    inventory: Inventory,
    audited: Iterable[Audited],
    prices: Prices,
    platform: Platform,
    target: Target,
    measured: Measured | None = None,
) -> Costed | None:
    """Compute the costs; None if the nodes are unknown.

    Args:
        inventory: the Pods, nodes and templates that the audit read.
        audited: their findings; `allocated` is not used.
        prices: the prices of nodes.
        platform: the taints and resources of accelerators.
        target: the versions assumed.
        measured: what a Prometheus measured; None without one.
    """
    if not inventory.nodes_known:
        return None
    audited = tuple(audited)
    nodes = {record.name: node for record in inventory.nodes if (node := gpu_node(record, prices))}
    holding = tuple(holdings(inventory, nodes))
    blocked = {owner.object for owner in audited if owner.action is Action.DENY}
    on_nodes: defaultdict[str, Fraction] = defaultdict(Fraction)
    for allocation in holding:
        if allocation.node:
            on_nodes[allocation.node.record.name] += allocation.gpus
    idle = (max(_NOTHING, n.offered - on_nodes[name]) * (n.usd_per_gpu or 0) for name, n in nodes.items())
    unallocated = float(sum(idle, _NOTHING))
    uses = tuple(pod_uses(inventory, holding, measured)) if measured else ()
    total = Cost(
        prices=str(prices),
        at_risk=_usd(allocation for allocation in holding if allocation.pod.owner in blocked),
        allocated=_usd(holding),
        idle=unallocated,
        unbounded=tuple(_unbounded(inventory, audited, nodes, prices, platform, target)),
        wasted=tuple(wasted(inventory, nodes, on_nodes, prices)),
        pools=tuple(_pools(nodes.values(), on_nodes)),
        unpriced_gpus=float(_unpriced(nodes.values(), holding)),
        spend=float(sum((node.gpus * (node.usd_per_gpu or 0) for node in nodes.values()), _NOTHING)),
        unallocated=unallocated,
        used=summed(use.used for use in uses),
        spending=tuple(_spending(nodes.values(), holding, uses, blocked)),
    )
    remarks = tuple(_remarks(inventory, nodes, on_nodes, holding, prices))
    return Costed(total, allocated_by_owner(holding), remarks, uses, _teams(holding))


def _teams(holding: Iterable[Holding]) -> dict[ObjectName, str]:
    """Return owner -> the team with the most GPUs."""
    gpus: defaultdict[ObjectName, defaultdict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for allocation in holding:
        gpus[allocation.pod.owner][allocation.pod.team] += allocation.gpus
    return {owner: min(teams, key=lambda team: (-teams[team], team)) for owner, teams in gpus.items()}


def _spending(
    nodes: Iterable[GpuNode], holding: Iterable[Holding], uses: Iterable[PodUse], blocked: Collection[ObjectName]
) -> Iterator[Spend]:
    """Yield the cost by team, namespace and NodePool, the highest first."""
    amounts: defaultdict[_Group, Fraction] = defaultdict(Fraction)
    costs: defaultdict[_Group, Fraction] = defaultdict(Fraction)
    used: defaultdict[_Group, list[Mapping[Use, tuple[Fraction, Fraction | None]]]] = defaultdict(list)
    at_risk: defaultdict[_Group, Fraction] = defaultdict(Fraction)
    priced: set[_Group] = set()

    def add(group: _Group, gpus: Fraction, usd: Fraction | None) -> None:
        amounts[group] += gpus
        if usd is not None:
            costs[group] += usd
            priced.add(group)

    for node in nodes:
        add(
            ("pool", node.record.node_pool),
            node.gpus,
            None if node.usd_per_gpu is None else node.gpus * node.usd_per_gpu,
        )
    for allocation in holding:
        add(("team", allocation.pod.team), allocation.gpus, allocation.usd)
        add(("namespace", allocation.pod.namespace), allocation.gpus, allocation.usd)
        if allocation.pod.owner in blocked:
            for group in _groups(allocation.pod, allocation.node):
                at_risk[group] += allocation.usd or 0
    for use in uses:
        for group in _groups(use.pod, use.node):
            used[group].append(use.used)
    for by, name in sorted(amounts, key=lambda group: (group[0], -costs[group], -amounts[group], group[1])):
        usd = float(costs[by, name]) if (by, name) in priced else None
        yield Spend(by, name, float(amounts[by, name]), usd, summed(used[by, name]), float(at_risk[by, name]))


def _groups(pod: GpuPod, node: GpuNode | None) -> Iterator[_Group]:
    """Yield the groups that the GPUs of a Pod belong to."""
    yield from (("team", pod.team), ("namespace", pod.namespace))
    if node:
        yield "pool", node.record.node_pool


def _usd(holding: Iterable[Holding]) -> float:
    return float(sum((allocation.usd or _NOTHING for allocation in holding), _NOTHING))


def _unpriced(nodes: Collection[GpuNode], holding: Iterable[Holding]) -> Fraction:
    """Return the GPUs of nodes without a price, and those allocated on nodes that nothing is known of."""
    there = sum((node.gpus for node in nodes if node.usd_per_gpu is None), _NOTHING)
    return there + sum((allocation.gpus for allocation in holding if allocation.node is None), _NOTHING)


def _pools(nodes: Iterable[GpuNode], allocated: Mapping[str, Fraction]) -> Iterator[PoolUse]:
    groups: defaultdict[tuple[str, str], list[GpuNode]] = defaultdict(list)
    for node in nodes:
        groups[node.record.node_pool, node.record.instance_type].append(node)
    for (pool, kind), members in sorted(groups.items()):
        costs = [node.gpus * usd for node in members if (usd := node.usd_per_gpu) is not None]
        yield PoolUse(
            node_pool=pool,
            instance_type=kind,
            nodes=len(members),
            gpus=float(sum(node.gpus for node in members)),
            allocated=float(sum((allocated.get(node.record.name, _NOTHING) for node in members), _NOTHING)),
            usd_per_hour=float(sum(costs)) if len(costs) == len(members) else None,
        )


def _unbounded(
    inventory: Inventory,
    audited: Iterable[Audited],
    nodes: Mapping[str, GpuNode],
    prices: Prices,
    platform: Platform,
    target: Target,
) -> Iterator[Unbounded]:
    pools = gpu_pools(inventory.node_pools, platform, target, prices)
    names = {name for t in inventory.templates for name in t.demand.resources}
    names |= {devices.device_class for t in inventory.templates for devices in t.demand.devices}
    supplies = supplies_of(names, pools, nodes.values(), prices)
    flagged = {owner.object for owner in audited if any(finding.policy == POLICY for finding in owner.findings)}
    unbounded = [
        replace(entry, team=inventory.pool_teams.get(entry.object.name, "")) for entry in unbounded_pools(pools, prices)
    ]
    unbounded += unbounded_scalers(inventory.scalers, inventory.templates, flagged, supplies)
    # An unknown worst case comes first.
    yield from sorted(unbounded, key=lambda u: (u.usd_per_hour is not None, -(u.usd_per_hour or 0), str(u.object)))


def _remarks(
    inventory: Inventory,
    nodes: Mapping[str, GpuNode],
    allocated: Mapping[str, Fraction],
    holding: Iterable[Holding],
    prices: Prices,
) -> Iterator[str]:
    if not inventory.pods_known:
        yield "not all Pods could be read: more GPUs may be allocated, and fewer idle"
    capacities = Counter(
        capacity_of(node.record)
        for node in nodes.values()
        if not prices.is_for(node.record.instance_type, capacity_of(node.record))
    )
    spot, reserved = capacities["spot"], capacities["reserved"]
    if spot:
        yield f"{_of_nodes(spot, nodes)} Spot: the on-demand price is an upper bound; set one with --price-table or --discount"
    if reserved:
        yield f"{_of_nodes(reserved, nodes)} reserved capacity: the on-demand price is not the price paid; set one with --price-table or --discount"
    listed = [node for node in nodes.values() if prices.is_listed(node.record.instance_type, capacity_of(node.record))]
    elsewhere = sorted({node.record.labels.get(_REGION, PLACE) for node in listed} - {PLACE})
    if elsewhere:
        yield f"prices are for {PLACE}, but there are GPU nodes in {', '.join(elsewhere)}"
    unpriced = sorted({node.record.instance_type or "no type" for node in nodes.values() if node.usd_per_gpu is None})
    if unpriced:
        yield f"GPU nodes of {', '.join(unpriced)} have no price, and no total includes them: add prices with --price-table"
    lost = sum((allocation.gpus for allocation in holding if allocation.node is None), _NOTHING)
    if lost:
        yield f"{float(lost):g} GPUs are allocated on nodes whose number of GPUs is unknown, and no total includes them"
    over = sorted(name for name, node in nodes.items() if allocated.get(name, _NOTHING) > node.offered)
    if over:
        many = "" if len(over) == 1 else f" and {len(over) - 1} more"
        yield f"Pods use more GPUs of node {over[0]}{many} than it offers: its GPUs are shared, or the node changed during the audit"
    silent = [n for n in nodes.values() if not any(n.record.accelerators.values()) and not allocated.get(n.record.name)]
    if silent:
        yield (
            f"{_of_nodes(len(silent), nodes)} without GPUs from a device plugin; all GPUs of their instance type count as idle, which "
            "is wrong if ResourceClaims could not be read"
        )


def _of_nodes(count: int, nodes: Mapping[str, GpuNode]) -> str:
    return f"{count} of {len(nodes)} GPU nodes {'is' if count == 1 else 'are'}"
