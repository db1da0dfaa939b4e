"""In which order Karpenter tries pools that could take the same Pod: the higher weight first.

Source: Karpenter v1.14.1 `pkg/utils/nodepool/nodepool.go` (OrderByWeight; a pool without a weight has 0, and equal
weights go by name).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools.pool_sharing.workloads import gpu_workloads, tolerates
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.facts import Need, each
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.node_pools import is_gpu_pool, matching_types
from gpugate.policies.sdk.objects import NODE_POOL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import WorkloadClass
    from gpugate.policies.sdk.policy import AnyContext

POOL_NEED: Final = Need(NODE_POOL, ("spec.limits", "spec.template", "spec.weight"))


@dataclass(frozen=True, slots=True)
class _Pool:
    field: Field
    name: WorkloadClass | None
    types: int
    taints: frozenset[tuple[str, str, str]]
    capacity: frozenset[str]
    weight: int
    shown: str


def misordered(pool: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Yield that another pool is tried before this one, or after it, against what they are for; one of each sort."""
    own = _described(pool, ctx)
    if own:
        rivals = list(_rivals(own, ctx))
        yield from islice((found for rival in rivals for found in _spot_after_on_demand(own, rival)), 1)
        yield from islice((found for rival in rivals for found in _training_before_inference(own, rival, ctx)), 1)


def _rivals(own: _Pool, ctx: AnyContext) -> Iterator[_Pool]:
    """Yield the other pools that could take the same Pods."""
    for around in each(ctx.facts.list(NODE_POOL), ctx):
        rival = around.derived(_described)
        if rival and own.taints == rival.taints and own.types & rival.types and rival.shown != ctx.request.name:
            yield rival


def _described(pool: Field, ctx: AnyContext) -> _Pool | None:
    types = ctx.derived(matching_types)
    if types is None or not ctx.derived(is_gpu_pool):
        return None
    taints = frozenset(
        (taint["key"].text, taint["value"].text, taint["effect"].text)
        for taint in pool["spec", "template", "spec", "taints"]
    )
    capacity = node_pools.capacity_types(types.requirements)
    weight, shown = pool["spec", "weight"].integer or 0, pool["metadata", "name"].text
    return _Pool(pool, node_pools.pool_class(pool, ctx), types.accelerated, taints, capacity, weight, shown)


def _spot_after_on_demand(own: _Pool, rival: _Pool) -> Iterator[Violation]:
    if own.name != "inference" or rival.name != "inference":
        return
    for spot, other in ((own, rival), (rival, own)):
        is_order = spot.field["spec", "weight"] or other.field["spec", "weight"]
        only = spot.capacity == {"spot"} and "spot" not in other.capacity
        if only and is_order and spot.weight <= other.weight:
            message = (
                f"weight {spot.weight} of {_this(spot, own)} is not above the {other.weight} of {_this(other, own)}, "
                "so Spot is not tried first"
            )
            hint = f"give the Spot pool a weight above {other.weight}"
            yield Violation(own.field["spec", "weight"].path, message, hint=hint)


def _training_before_inference(own: _Pool, rival: _Pool, ctx: AnyContext) -> Iterator[Violation]:
    for training, inference in ((own, rival), (rival, own)):
        if (training.name, inference.name) != ("training", "inference") or training.weight <= inference.weight:
            continue
        free = (w for w in ctx.derived(gpu_workloads) if w.name == "inference" and w.is_free)
        first = next((w for w in free if tolerates(w, training.field, ctx)), None)
        if first:
            message = (
                f"weight {training.weight} of {_this(training, own)} is above the {inference.weight} of "
                f"{_this(inference, own)}, so {first.shown} is placed on training nodes first"
            )
            hint = f"give the training pool at most weight {inference.weight}, or the workload a node selector"
            yield Violation(own.field["spec", "weight"].path, message, hint=hint)


def _this(pool: _Pool, own: _Pool) -> str:
    return "this pool" if pool is own else f"NodePool {pool.shown}"
