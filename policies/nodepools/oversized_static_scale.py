"""Static GPU pool that is scaled to more nodes than allowed.

## Why is this bad?
Karpenter launches the nodes of a static pool at once, whether Pods need them or not: `kubectl scale nodepool gpu --replicas=80`
for 8 starts 80 GPU nodes, and each of them costs money until the pool is scaled back.

## Instead
Write in the policy file how many accelerators a static pool may have, and set a limit on its nodes:

```yaml
policies:
  nodepools/oversized-static-scale:
    params:
      max_per_pool: 64
```

A request that scales a pool above `max_per_pool` is denied. Scaling it to fewer nodes than it has is never denied. Without
`max_per_pool` the policy only warns if `spec.replicas` exceeds `spec.limits.nodes`, because Karpenter then launches only as many nodes
as the limit allows.

At admission, the policy evaluates NodePools and requests to their subresource `scale`, which `kubectl scale` and autoscalers
send. Such a request contains the number of replicas only, so the instance types come from the NodePool in the cluster. Without
cluster data the request is not evaluated. In files and in an audit, the policy evaluates `spec.replicas` of the NodePool.

The number of accelerators is that of the largest type that the pool can launch, for each node.

## Sources
Karpenter v1.14.1 `pkg/controllers/static/provisioning/controller.go` (`replicas`, and `limits.nodes` as its maximum),
`pkg/apis/crds/karpenter.sh_nodepools.yaml` (`subresources.scale`; a static pool accepts no other limit than `nodes`); EC2 types as of
2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.nodepools._accelerators import makes, most_devices
from gpugate.policies.nodepools._gpu_pools import if_gpu_pool, with_gpu_types
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.facts import Need, object_contexts, object_doubt
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.launch_failures import quantity_text
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL, NODE_POOL_SCALE, Operation
from gpugate.policies.sdk.policy import AnyContext, Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.node_pools import MatchingTypes

_NODES: Final = "nodes"
_NOT_LAUNCHED: Final = "The pool stays at the limit: Karpenter does not launch the other nodes, and reports no error."


class Params(PolicyParams, frozen=True, kw_only=True):
    """How large a static pool may be.

    Attributes:
        max_per_pool: the most accelerators that the nodes of one static pool may have together; absent: no maximum.
    """

    max_per_pool: Annotated[int, msgspec.Meta(ge=1)] | None = None


@validates(NODE_POOL, params=Params, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report the replicas of a static pool."""
    replicas = pool["spec", "replicas"]
    if replicas.integer:
        at_most = Stance.WARN if _is_lowered(pool, ctx) else Stance.ENFORCE
        yield from _oversized(replicas, replicas.integer, pool, ctx, ctx.params, at_most)


@validates(
    NODE_POOL_SCALE,
    params=Params,
    operations=frozenset({Operation.UPDATE}),
    needs=(Need(NODE_POOL, ("spec.limits", "spec.template")),),
    tables=(INSTANCE_TYPES,),
)
def check_scale(scale: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report the same of a request to scale a pool, whose types are those of the NodePool in the cluster."""
    replicas, name = scale["spec", "replicas"], ctx.request.name
    if not replicas.integer:
        return
    fact = ctx.facts.list(NODE_POOL)
    doubt = object_doubt(fact, NODE_POOL, name)
    if doubt:
        yield doubt
        return
    at_most = Stance.WARN if _is_lowered(scale, ctx) else Stance.ENFORCE
    for around in object_contexts(fact, ctx):
        if around.subject["metadata", "name"].text == name:
            yield from _oversized(replicas, replicas.integer, around.subject, around, ctx.params, at_most)


def _is_lowered(obj: Field, ctx: AnyContext) -> bool:
    """Tell whether an UPDATE gives a pool fewer nodes than before, and changes none of them."""
    before = Field(ctx.request.old_object if ctx.request.operation is Operation.UPDATE else None)
    old, new = before["spec", "replicas"].integer, obj["spec", "replicas"].integer
    same = before["spec", "template"].value == obj["spec", "template"].value
    return same and old is not None and new is not None and new <= old


def _oversized(
    replicas: Field, count: int, pool: Field, around: AnyContext, params: Params, at_most: Stance
) -> Iterator[Violation | Skip]:
    """Yield what is wrong with so many replicas of a pool; `around` has the pool as its subject."""
    limit = node_pools.limits(pool).get(_NODES)
    if limit is not None and count > limit:
        allowed = quantity_text(_NODES, limit)
        message = f"{count} replicas exceed the limit of nodes: Karpenter launches {allowed}"
        hint = f"raise the limit of nodes, or lower the replicas to {allowed}"
        yield from if_gpu_pool(pool, around, [Violation(replicas.path, message, Stance.WARN, hint, why=_NOT_LAUNCHED)])
    most = params.max_per_pool
    if most is None:
        return
    nodes = count if limit is None else min(count, int(limit))

    def above_maximum(_pool: Field, types: MatchingTypes, _ctx: AnyContext) -> Iterator[Violation]:
        per_node = max((most_devices(make, types.catalogue) for make in makes(types)), default=0)
        if nodes * per_node > most:
            message = f"{nodes} nodes of up to {per_node} accelerators are too many (maximum for one pool: {most})"
            fitting = most // per_node
            hint = (
                f"lower the replicas to {fitting} or less"
                if fitting
                else f"require types with {most} accelerators or fewer"
            )
            yield Violation(replicas.path, message, at_most, hint)

    yield from with_gpu_types(pool, around, above_maximum)
