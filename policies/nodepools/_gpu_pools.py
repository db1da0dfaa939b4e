"""What policies on the disruption of GPU pools have in common: which pools they evaluate."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from gpugate.policies.nodepools._accelerators import makes
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.node_pools import declares_accelerators, is_gpu_pool, matching_types
from gpugate.policies.sdk.policy import Params

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.findings import Skip, Violation
    from gpugate.policies.sdk.node_pools import MatchingTypes
    from gpugate.policies.sdk.policy import AnyContext, Context

P = TypeVar("P", bound=Params)


def if_gpu_pool(pool: Field, ctx: AnyContext, findings: Iterable[Violation | Skip]) -> Iterator[Violation | Skip]:
    """Yield the findings if the pool is for accelerators.

    A pool with unknown types is for accelerators if it declares them.
    """
    for_gpus = ctx.derived(is_gpu_pool)
    if for_gpus or (for_gpus is None and declares_accelerators(pool, ctx)):
        yield from findings
    elif for_gpus is None:
        for _ in findings:
            yield node_pools.types_doubt(pool, ctx)
            return


def with_gpu_types(
    pool: Field, ctx: Context[P], find: Callable[[Field, MatchingTypes, Context[P]], Iterator[Violation]]
) -> Iterator[Violation | Skip]:
    """Yield the findings in the types of a GPU pool; a skip if the types of its provider are unknown."""
    types = ctx.derived(matching_types)
    if types is None:
        yield node_pools.types_doubt(pool, ctx)
    elif ctx.derived(is_gpu_pool):
        yield from find(pool, types, ctx)


def accelerator(_pool: Field, ctx: AnyContext) -> str:
    """Return the name of a pool's accelerators in messages: Neuron devices are not GPUs."""
    types = ctx.derived(matching_types)
    made_by = {make.manufacturer for make in makes(types)} if types else set()
    if "aws" not in made_by:
        return "GPU"
    return "accelerator" if len(made_by) > 1 else "Neuron"


def is_training(pool: Field, ctx: AnyContext) -> bool:
    """Tell whether a pool is for training by the labels of its nodes, also if it is for other classes too."""
    return "training" in node_pools.pool_classes(pool, ctx)


def is_static(pool: Field) -> bool:
    """Tell whether a pool keeps a fixed number of nodes, which Karpenter does not consolidate."""
    return bool(pool["spec", "replicas"])


def is_reserved(pool: Field, ctx: AnyContext) -> bool:
    """Tell whether a pool has only reserved capacity, which costs the same when it is idle."""
    return node_pools.capacity_types(node_pools.pool_requirements(pool, ctx)) == {"reserved"}
