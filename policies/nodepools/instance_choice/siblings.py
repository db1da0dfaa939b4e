"""Instance types that could stand in for those a pool has: alike in accelerators, memory and price."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.accelerators import PROVISIONED_BY_KARPENTER
from gpugate.policies.sdk import node_pools, scheduling
from gpugate.policies.sdk.findings import Patch, Patches

if TYPE_CHECKING:
    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.nodepools.instance_choice.narrowing import Narrowing
    from gpugate.policies.sdk.node_pools import MatchingTypes

_GPU_MEMORY: Final = f"{node_pools.AWS}/instance-gpu-memory"
_CATEGORY: Final = f"{node_pools.AWS}/instance-category"
# Dearer or cheaper by more than this is near no more.
_NEAR: Final = math.log(2.5)
# A type without a price is taken to cost half as much again: near, but behind those whose price is known to be nearer.
_UNPRICED: Final = math.log(1.5)
_SUGGESTED: Final = 3


def siblings(present: int, candidates: int, catalogue: InstanceTypes, needed: int) -> tuple[int, ...]:
    """Return the positions of candidates that are most like the dearest of the types present.

    They offer the same kind of accelerator, at least as many of it, and, where there are such, at least as much memory
    on each. Those of the same category (p, g, trn) come first, then the nearest in price. There are three, if as many
    are near, and as many as needed, near or not.
    """
    if not present:
        return ()
    model = max(catalogue.positions_in(present), key=lambda position: catalogue.prices[position] or 0.0)
    alike = candidates & ~present & _as_many(model, catalogue)
    memory = catalogue.label(_GPU_MEMORY, model)
    as_large = alike & catalogue.scales[_GPU_MEMORY].at_least(int(memory)) if memory else alike
    category = catalogue.of(_CATEGORY, catalogue.label(_CATEGORY, model))
    gaps = {position: _price_gap(model, position, catalogue) for position in catalogue.positions_in(as_large or alike)}
    ordered = sorted(gaps, key=lambda position: (not category >> position & 1, gaps[position]))
    near = [position for position in ordered if gaps[position] <= _NEAR]
    return tuple(near[: max(_SUGGESTED, needed)] if len(near) >= needed else ordered[:needed])


def _as_many(model: int, catalogue: InstanceTypes) -> int:
    for resource in sorted(PROVISIONED_BY_KARPENTER & catalogue.allocatable.keys()):
        scale = catalogue.allocatable[resource]
        amount = max((n for n in scale.numbers if n and scale.at_least(n) >> model & 1), default=0)
        if amount:
            return scale.at_least(amount)
    accelerated = catalogue.accelerated
    return accelerated if accelerated >> model & 1 else catalogue.everything & ~accelerated


def _price_gap(model: int, other: int, catalogue: InstanceTypes) -> float:
    ours, theirs = catalogue.prices[model], catalogue.prices[other]
    return abs(math.log(theirs / ours)) if ours and theirs else _UNPRICED


def widened(
    types: MatchingTypes, narrowing: Narrowing, more: tuple[int, ...], needed: int, counted: int
) -> Patches | None:
    """Return the change that lets siblings in; None where adding values to one list does not reach the number needed.

    `counted` are the types that count towards it.
    """
    entry = narrowing.entry
    if entry is None or entry.requirement.operator != "In" or not entry.field["values"]:
        return None
    wanted = dict.fromkeys(types.catalogue.label(entry.key, position) for position in more)
    new = tuple(value for value in wanted if value and value not in entry.requirement.values)
    wider = replace(entry.requirement, values=entry.requirement.values | set(new))
    entries = tuple(replace(e, requirement=wider) if e is entry else e for e in types.entries)
    after = scheduling.matching(node_pools.combined(entries), types.catalogue) & counted
    if not new or after.bit_count() < needed:
        return None
    key = entry.key.rpartition("/")[2]
    reason = f"allows another {key}, so that the pool has {after.bit_count()} instance types to choose from"
    return Patches(tuple(Patch("append", entry.field["values"].path, value, reason) for value in new))
