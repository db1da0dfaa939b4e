"""NodePools whose limits together allow more accelerators than the platform pays for.

## Why is this bad?
All pools together can launch more accelerators than the platform plans to pay for. A limit bounds one pool only: a burst of
Pods, or a Job started by mistake, fills each pool up to its own limit.

## Instead
Write in the policy file how many accelerators of each resource the cluster may have, and lower the limits of pools until
their sum is not above it:

```yaml
policies:
  nodepools/cluster-gpu-ceiling:
    params:
      max_per_cluster: {nvidia.com/gpu: 64}
```

Without `max_per_cluster` the policy reports nothing. Of each pool, the lowest of these bounds counts: its limit on the
resource, the nodes of a static pool, and the nodes that its limits of `cpu`, `memory` and `nodes` allow. A pool without any
bound does not count, because `nodepools/missing-gpu-limit` reports it. If not all NodePools are known, the sum is over
those that are.

Nodes that start at the same moment can exceed the limit of a pool. The policy compares limits, not the nodes that exist.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (`limits` are of one NodePool); kubernetes-sigs/karpenter issue 745 (a limit
for all NodePools together does not exist); EC2 types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from gpugate.policies.nodepools._accelerators import makes, most_devices, reachable
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.facts import Known, Need, Unavailable, derived, object_contexts
from gpugate.policies.sdk.findings import Other, Skip, Stance, Violation
from gpugate.policies.sdk.launch_failures import quantity_text
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, is_for_accelerators, matching_types
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.quantity import Amount

_NAMED = 3


class Params(PolicyParams, frozen=True, kw_only=True):
    """How many accelerators the cluster may have.

    Attributes:
        max_per_cluster: the highest sum of the limits of all NodePools, by resource, such as `nvidia.com/gpu`; empty: no
            maximum.
    """

    max_per_cluster: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = msgspec.field(default_factory=dict)


@validates(
    NODE_POOL,
    params=Params,
    mode=Stance.WARN,
    needs=(Need(NODE_POOL, ("spec.limits", "spec.replicas", "spec.template")),),
    tables=(INSTANCE_TYPES,),
)
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report each resource of which the known pools, including this one, may have more than the platform allows."""
    if not ctx.params.max_per_cluster:
        return
    own, name = ctx.derived(_bounds), pool["metadata", "name"].text
    fact = ctx.facts.list(NODE_POOL)
    known = derived(fact, _bounds_of_all, ctx) if isinstance(fact, Known) else {}
    doubtful = isinstance(fact, Unavailable) or not fact.complete
    for resource, most in sorted(ctx.params.max_per_cluster.items()):
        if not own.get(resource):
            continue
        amounts = {other: bounds[resource] for other, bounds in known.items() if bounds.get(resource)}
        amounts[name] = own[resource]
        if sum(amounts.values()) > most:
            yield _violation(pool, resource, amounts, most)
        elif doubtful:
            yield Skip(fact.reason if isinstance(fact, Unavailable) else "not all NodePools are known")


def _violation(pool: Field, resource: str, amounts: dict[str, Amount], most: int) -> Violation:
    name = pool["metadata", "name"].text
    ordered = sorted(amounts, key=lambda pool_name: (-amounts[pool_name], pool_name))
    total = quantity_text(resource, sum(amounts.values()))
    who = f"{len(amounts)} NodePools together" if len(amounts) > 1 else "this NodePool"
    listed = ", ".join(f"{pool_name} ({quantity_text(resource, amounts[pool_name])})" for pool_name in ordered[:_NAMED])
    more = f" and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
    limits = pool["spec", "limits"]
    return Violation(
        (limits[resource] or limits).path,
        f"the limits of {who} allow {total} {resource} (maximum for the cluster: {most})",
        hint=f"lower the limits of {resource} in {listed}{more} to {most} in total",
        others=tuple(Other("NodePool", "", pool_name) for pool_name in ordered if pool_name != name),
        follows=ordered[0] != name,
    )


def _bounds_of_all(known: Known, ctx: AnyContext) -> dict[str, dict[str, Amount]]:
    return {around.subject["metadata", "name"].text: around.derived(_bounds) for around in object_contexts(known, ctx)}


def _bounds(pool: Field, ctx: AnyContext) -> dict[str, Amount]:
    """Return the most accelerators that a pool may have, by resource, without unbounded ones."""
    limits = node_pools.limits(pool)
    bounds: dict[str, Amount] = {name: limit for name, limit in limits.items() if ctx.platform.is_accelerator(name)}
    types = ctx.derived(matching_types)
    if types is None:
        return bounds
    offered = set[str]()
    for make in makes(types):
        resource = make.resources[0]
        offered.update(make.resources)
        replicas = pool["spec", "replicas"].integer
        nodes = (
            reachable(make, limits, types.catalogue)
            if replicas is None
            else replicas * most_devices(make, types.catalogue)
        )
        if nodes is not None and (resource in bounds or is_for_accelerators(pool, ctx)):
            bounds[resource] = min(bounds.get(resource, nodes), nodes)
    # A limit on a resource that no type has allows none of it.
    return {name: bound for name, bound in bounds.items() if name in offered or types.unknown}
