"""What a NodePool can become: the types that it may launch, and how many GPUs its limits let it have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.nodepools._accelerators import NODES, devices, makes, most_allowed, node_limits
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.policy import Context, Params
from gpugate.webhook.audit.model import Unbounded
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from fractions import Fraction

    from gpugate.policies.nodepools._accelerators import Make
    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.node_pools import MatchingTypes
    from gpugate.policies.sdk.platform import Platform, Target
    from gpugate.policies.sdk.quantity import Amount
    from gpugate.webhook.audit.cost.prices import Prices


@dataclass(frozen=True, slots=True)
class GpuPool:
    """A NodePool for GPUs.

    Attributes:
        object: which.
        types: those it may launch; None where its provider's are not known.
        makes: the accelerators among them.
        limits: its limits by resource; `replicas` of a static pool count as `nodes`.
    """

    object: ObjectName
    types: MatchingTypes | None
    makes: tuple[Make, ...]
    limits: Mapping[str, Amount]

    def most(self, make: Make) -> int | None:
        """Return the most devices of a make that it can have; None where nothing bounds them."""
        return None if self.types is None else most_allowed(make, self.limits, self.types.catalogue)


def gpu_pools(pools: Iterable[Mapping[str, Json]], platform: Platform, target: Target, prices: Prices) -> list[GpuPool]:
    """Return the NodePools for GPUs, and those that declare it if their types are unknown."""
    return [gpu_pool for pool in pools if (gpu_pool := _gpu_pool(Field(dict(pool)), platform, target, prices))]


def _gpu_pool(pool: Field, platform: Platform, target: Target, prices: Prices) -> GpuPool | None:
    kind = GroupVersionKind.of(pool["apiVersion"].text, pool["kind"].text)
    request = Request(kind, Operation.CREATE, dict(pool.mapping), name=pool["metadata", "name"].text)
    tables = {node_pools.INSTANCE_TYPES.name: prices.catalogue}
    ctx = Context(Params(), pool, None, request, NoFacts(), platform, target, tables)
    if not node_pools.is_for_accelerators(pool, ctx):
        return None
    types = ctx.derived(node_pools.matching_types)
    limits = node_limits(pool)
    offered = tuple(make for make in makes(types) if make.offering) if types else ()
    return GpuPool(ObjectName(kind.api_version, kind.kind, "", request.name), types, offered, limits)


def unbounded_pools(pools: Iterable[GpuPool], prices: Prices) -> Iterator[Unbounded]:
    """Yield the pools whose GPUs nothing limits but perhaps their CPU and memory, and what those let them cost."""
    for pool in pools:
        if NODES in pool.limits:
            continue
        if pool.types is None:
            if not any("/" in name for name in pool.limits):
                yield Unbounded(pool.object, "no limit on GPUs; the instance types of its provider are unknown", None)
            continue
        unlimited = [make for make in pool.makes if pool.limits.keys().isdisjoint(make.resources)]
        if unlimited:
            names = " or ".join(make.resources[0] for make in unlimited)
            yield _unbounded(pool, unlimited, names, prices)


def _unbounded(pool: GpuPool, unlimited: list[Make], names: str, prices: Prices) -> Unbounded:
    if all(pool.most(make) is None for make in unlimited):
        return Unbounded(pool.object, f"no limit on {names}", None)
    worst: tuple[Fraction, str] | None = None
    unpriced = []
    for make in unlimited:
        catalogue = pool.types.catalogue if pool.types else prices.catalogue
        for position in catalogue.positions_in(make.offering):
            name = catalogue.names[position]
            price = prices.of(name)
            if price is None:
                unpriced.append(name)
                continue
            gpus = pool.most(make.of_type(position)) or 0
            usd = gpus * price / devices(make, position, catalogue)
            worst = max(worst or (usd, name), (usd, name))
    bounding = " and ".join(name for name in ("cpu", "memory") if name in pool.limits)
    reason = f"no limit on {names}, only on {bounding}"
    if worst is None:
        return Unbounded(pool.object, f"{reason}; its instance types have no price", None)
    apart = f"; without unpriced {', '.join(unpriced)}" if unpriced else ""
    return Unbounded(pool.object, f"{reason}; worst case as {worst[1]}{apart}", float(worst[0]))
