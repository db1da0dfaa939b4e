"""GPU NodePool whose limits are below the size of one node.

## Why is this bad?
Karpenter never launches a node from this pool, and the Pods that need it stay Pending. Karpenter does not launch an
instance type whose capacity is above what is left of a limit.

## Instead
Set each limit to the size of one node or more, multiplied by the number of nodes that the pool may have:

```yaml
limits:
  nvidia.com/gpu: "16"    # two nodes of p5.48xlarge, which has 8 GPUs
```

Or allow smaller types. The policy compares the limits with all types that the requirements of the pool allow. In a GPU
pool only types with an accelerator count. If no limit alone is below the size of a node, but no type fits all limits
together, the policy reports `limits`.

A limit of `"0"` switches a pool off and is not reported. Pools that name types or families that gpugate does not know
are not reported. If only one type fits the limits, `nodepools/single-instance-type` reports the pool.

## Sources
Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/scheduler.go` (filterByRemainingResources compares the capacity
of a type with each limit); aws/karpenter-provider-aws issue 5975; EC2 types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._gpu_pools import with_gpu_types
from gpugate.policies.nodepools._instance_choice import excluded_by_limits
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.findings import Skip, Violation
from gpugate.policies.sdk.launch_failures import quantity_text
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, unknown_accelerated
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.data.instance_types import InstanceTypes, Scale
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import MatchingTypes
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.quantity import Amount

_MIB: Final = 2**20


@validates(NODE_POOL, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report each limit that excludes every type with an accelerator, or else the limits that do so together."""
    yield from with_gpu_types(pool, ctx, _violations)


def _violations(pool: Field, types: MatchingTypes, _ctx: AnyContext) -> Iterator[Violation]:
    limits = {name: limit for name, limit in node_pools.limits(pool).items() if limit > 0}
    if types.unknown or unknown_accelerated(types) or not excluded_by_limits(types, pool):
        return
    catalogue, alone = types.catalogue, 0
    for resource, limit in limits.items():
        if not types.accelerated & ~node_pools.above(catalogue, resource, limit):
            alone += 1
            name, amount = _smallest(resource, types)
            size = quantity_text(resource, amount)
            yield Violation(
                pool["spec", "limits", resource].path,
                f"the limit of {quantity_text(resource, limit)} {resource} is below one node: {name}, the smallest "
                f"instance type of the pool, has {size}",
                hint=f"raise the limit to {size} or more, or allow a smaller instance type",
            )
    if not alone:
        count = types.accelerated.bit_count()
        yield Violation(
            pool["spec", "limits"].path,
            f"the limits together exclude all {count} instance types of the pool",
            hint=f"raise the limits to one node or more: {_one_node(limits, types)}",
        )


def _smallest(resource: str, types: MatchingTypes) -> tuple[str, Amount]:
    """Return the type of a pool with the smallest amount of a resource, and that amount."""
    scale, unit = _scale(resource, types.catalogue)
    number = next(n for n in scale.numbers if types.accelerated & ~scale.at_least(n + 1))
    least = types.accelerated & ~scale.at_least(number + 1)
    return next(types.catalogue.decode(least)), unit * number


def _one_node(limits: dict[str, Amount], types: MatchingTypes) -> str:
    """Return the amounts, as text, of a node of the type that exceeds the fewest limits."""
    catalogue = types.catalogue
    above = {resource: node_pools.above(catalogue, resource, limit) for resource, limit in limits.items()}
    at = min(
        catalogue.positions_in(types.accelerated),
        key=lambda position: (sum(large >> position & 1 for large in above.values()), position),
    )
    needed = []
    for resource in sorted(above):
        if above[resource] >> at & 1:
            scale, unit = _scale(resource, catalogue)
            most = next(n for n in reversed(scale.numbers) if scale.at_least(n) >> at & 1)
            needed.append(f"{resource} {quantity_text(resource, unit * most)}")
    return f"{catalogue.names[at]} has {' and '.join(needed)}"


def _scale(resource: str, catalogue: InstanceTypes) -> tuple[Scale, Amount]:
    """Return how much of a resource types have, and its unit: of CPU and memory the whole node."""
    if resource == "cpu":
        return catalogue.capacity["cpu"], 1
    if resource == "memory":
        return catalogue.capacity["memory"], _MIB
    return catalogue.allocatable[resource], 1
