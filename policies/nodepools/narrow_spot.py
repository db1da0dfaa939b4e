"""Spot pool of one instance family or one zone.

## Why is this bad?
Spot capacity runs out by family and zone: a pool with one family or one zone can lose all its nodes within minutes
and get no replacement. The number of instance types matters less, because the sizes of one family run out together.

The policy counts only types that have an accelerator and that EC2 offered on the date of the data.
`nodepools/single-instance-type` reports pools with too few *types*.

## Instead
Name GPUs of at least two families (`l4` is g6 and gr6, `l40s` is g6e, `a10g` is g5), or allow on-demand capacity in a
second pool with a lower weight. Remove `topology.kubernetes.io/zone`, so that Karpenter uses every subnet of the node
class, or name at least two zones. One zone is right for workloads that need EFA or a placement group; run those
on-demand.

## Sources
AWS "Best practices for Amazon EC2 Spot" (flexible about instance types and Availability Zones); Karpenter v1.14.1
`pkg/apis/v1/labels.go`; EC2 types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec

from gpugate.policies.nodepools._accelerators import makes
from gpugate.policies.nodepools._gpu_pools import with_gpu_types
from gpugate.policies.nodepools._instance_choice import edited, listed_names, narrowest, within_limits
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.scheduling import ZONES
from gpugate.policies.sdk.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import MatchingTypes

_FAMILY: Final = f"{AWS}/instance-family"

_ON_DEMAND: Final = "Capacity runs out by family: a pool with few families gets no node while they are short."

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class Params(PolicyParams, frozen=True, kw_only=True):
    """What counts as narrow.

    Attributes:
        families: the minimum number of instance families of a pool that may use Spot.
        on_demand_families: the same for a pool that may not use Spot.
        zones: the minimum number of zones of a pool that may use Spot and names zones.
    """

    families: Count = 2
    on_demand_families: Count = 1
    zones: Count = 2


@validates(NODE_POOL, params=Params, mode=Stance.WARN, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report too few instance families or zones."""
    if node_pools.ec2_types(pool, ctx) is None:
        yield node_pools.types_doubt(pool, ctx)
    else:
        yield from with_gpu_types(pool, ctx, _violations)


def _violations(pool: Field, types: MatchingTypes, ctx: Context[Params]) -> Iterator[Violation]:
    spot = "spot" in node_pools.capacity_types(types.requirements)
    needed = ctx.params.families if spot else ctx.params.on_demand_families
    violations = _families(pool, types, needed, "Spot pools" if spot else "on-demand pools")
    yield from violations if spot else (replace(violation, why=_ON_DEMAND) for violation in violations)
    if spot:
        yield from _few_zones(types, ctx.params.zones)


def _families(pool: Field, types: MatchingTypes, needed: int, whose: str) -> Iterator[Violation]:
    if needed <= 1:
        return
    families = _some_families(types, _counted(types) & within_limits(types, pool), needed)
    if not families or len(families) >= needed:
        return
    cause = narrowest(types, pool, _counted(types), needed)
    if cause is None:
        return
    is_single = len(families) == 1
    message = (
        f"allows {len(families)} instance famil{'y' if is_single else 'ies'} ({listed_names(families)}); "
        f"{whose} need at least {needed}"
    )
    like = cause.others & _of_the_same_makes(types)
    by_name = types.catalogue.values[_FAMILY]
    others = sorted(name for name, members in by_name.items() if members & like and name not in families)
    more = f"raise {cause.name}" if cause.entry is None else f"allow more values of {cause.short}"
    hint = f"{more}: it excludes the families {listed_names(others)}" if others else "allow other accelerators"
    # Too few types by the same requirement: types of other families fix both.
    yield Violation(edited(cause.field).path, message, hint=hint, same_as=("nodepools/single-instance-type",))


def _counted(types: MatchingTypes) -> int:
    """Return the types with an accelerator, as Pods that request one cannot use other types."""
    return types.catalogue.accelerated


def _of_the_same_makes(types: MatchingTypes) -> int:
    alike = 0
    for make in makes(types):
        alike |= types.catalogue.offering(make.resources[0])
    return alike


def _some_families(types: MatchingTypes, left: int, needed: int) -> list[str]:
    """Return the families of some types, at most as many as needed. A type's name starts with its family."""
    families: set[str] = set()
    while left and len(families) < needed:
        name = types.catalogue.names[left.bit_length() - 1].partition(".")[0]
        families.add(name)
        left &= ~(types.catalogue.of(_FAMILY, name) | 1 << left.bit_length() - 1)
    return sorted(families)


def _few_zones(types: MatchingTypes, needed: int) -> Iterator[Violation]:
    for key in ZONES:
        required = types.requirements.get(key)
        if required is None or required.complement or len(required.values) >= needed:
            continue
        field = next(entry.field for entry in types.entries if entry.key == key)
        named = listed_names(sorted(required.values)) or "none"
        plural = "" if len(required.values) == 1 else "s"
        message = f"allows {len(required.values)} zone{plural} ({named}); Spot pools need at least {needed}"
        hint = f"name {needed} zones or more, or remove the requirement"
        yield Violation(edited(field).path, message, Stance.WARN, hint)
