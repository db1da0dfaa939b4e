"""GPU pool without a limit on its GPUs.

## Why is this bad?
Without a limit a pool launches as many GPU nodes as Pods request: a Job of 1000 Pods with 8 H100 each, started by
mistake, costs 55,000 USD an hour. A limit on an unknown resource name, such as `nvidia.com/gpus`, has no effect.

## Instead
Limit each accelerator resource that the pool can launch, under `spec.limits`:

```yaml
limits:
  nvidia.com/gpu: "32"
```

A limit of `nodes` has the same effect. A static pool has as many nodes as its `spec.replicas`, and accepts no other limit
than `nodes`; `nodepools/oversized-static-scale` reports too many replicas. A limit of `"0"` switches a pool off and is
allowed. Limits of `cpu` and `memory` bound GPUs only indirectly. If they allow up to `at_most_indirect` GPUs, the pool gets a
warning; if they allow more, it is denied.

A pool may limit NVIDIA GPUs and also launch AMD GPUs. If it includes the AMD types only through a broad requirement, such
as the category `g`, `nodepools/unpinned-manufacturer` reports them.

A pool counts as a GPU pool if its requirements name types, families, categories or GPUs with an accelerator, even
together with types that have none. A pool whose requirements name no types at all may launch GPU types too, but does
not count as a GPU pool.

Limits are per pool, and nodes that start at the same moment can exceed them.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (`limits`), `pkg/controllers/provisioning/scheduling/scheduler.go` (types above what is
left are not launched; `nodes`), `pkg/apis/crds/karpenter.sh_nodepools.yaml` (static pools); EC2 types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.nodepools._accelerators import is_minor, makes, most_devices, reachable
from gpugate.policies.nodepools._gpu_pools import with_gpu_types
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.nodepools._accelerators import Make
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import MatchingTypes


_ABOVE: Final = "One pool can then start more accelerators than the policy file allows for it."


class Params(PolicyParams, frozen=True, kw_only=True):
    """How many accelerators a pool may have.

    Attributes:
        max_per_pool: the highest limit of one pool, in whole accelerators; absent: no maximum.
        at_most_indirect: if only cpu or memory are limited, a pool with up to this many accelerators gets a warning and is
            not denied.
    """

    max_per_pool: Annotated[int, msgspec.Meta(ge=1)] | None = None
    at_most_indirect: Annotated[int, msgspec.Meta(ge=0)] = 64


@validates(NODE_POOL, params=Params, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report the makes of accelerator without a limit, and limits above the maximum of the platform."""
    yield from with_gpu_types(pool, ctx, _violations)


def _violations(pool: Field, types: MatchingTypes, ctx: Context[Params]) -> Iterator[Violation]:
    offering_makes = tuple(make for make in makes(types) if make.offering)
    yield from _too_many(pool, types, offering_makes, ctx.params.max_per_pool)
    limits = node_pools.limits(pool)
    if pool["spec", "replicas"] or "nodes" in limits:
        return
    unlimited = tuple(make for make in offering_makes if limits.keys().isdisjoint(make.resources))
    if unlimited and len(unlimited) == len(offering_makes):
        yield from _nothing_limited(pool, types, unlimited, ctx.params)
    else:
        yield from (_another_make(make, pool["spec", "limits"]) for make in unlimited if not is_minor(make, types))


def _too_many(
    pool: Field, types: MatchingTypes, offering_makes: tuple[Make, ...], most: int | None
) -> Iterator[Violation]:
    if most is None or not offering_makes:
        return
    limits = node_pools.limits(pool)
    for make in offering_makes:
        field = pool["spec", "limits", make.resources[0]]
        if limits.get(make.resources[0], 0) > most:
            message = f"the limit of {field.value} {make.resources[0]} is too high (maximum for one pool: {most})"
            yield Violation(field.path, message, hint=f"lower the limit to {most} or less", why=_ABOVE)
    if "nodes" in limits and limits.keys().isdisjoint(make.resources[0] for make in offering_makes):
        per_node = max(most_devices(make, types.catalogue) for make in offering_makes)
        nodes = pool["spec", "limits", "nodes"]
        if limits["nodes"] * per_node > most:
            message = (
                f"{nodes.value} nodes of up to {per_node} accelerators are too many (maximum for one pool: {most})"
            )
            fitting = most // per_node
            hint = (
                f"lower the limit of nodes to {fitting} or less"
                if fitting
                else f"require types with {most} accelerators or fewer"
            )
            yield Violation(nodes.path, message, hint=hint, why=_ABOVE)


def _nothing_limited(
    pool: Field,
    types: MatchingTypes,
    unlimited: tuple[Make, ...],
    params: Params,
) -> Iterator[Violation]:
    resource = unlimited[0].resources[0]
    limits = pool["spec", "limits"]
    hint = f"add a limit of {resource} under spec.limits"
    for key, field in limits.items():
        if _meant_for(resource, key):
            reason = f"limits {resource}, the resource that Pods request"
            renamed = (
                Patch("remove", field.path, None, reason),
                Patch("set", limits[resource].path, field.value, reason),
            )
            message = f"the limit on {key} has no effect: the resource is {resource}"
            yield Violation(field.path, message, hint=f"rename the limit to {resource}", fix=Patches(renamed))
            return
    bounds = [reachable(make, node_pools.limits(pool), types.catalogue) for make in unlimited]
    most = max((bound for bound in bounds if bound is not None), default=None)
    if most is None:
        yield Violation(limits.path, f"nothing limits how many {resource} the pool may have", hint=hint)
    elif most > (params.max_per_pool or 0):
        at_most = Stance.ENFORCE if most > params.at_most_indirect else Stance.WARN
        message = f"missing limit on {resource}: the other limits allow up to {most}"
        why = f"A mistake can launch all of them: limits of {_and(limits)} bound the GPUs only indirectly."
        yield Violation(limits.path, message, at_most, hint, why=why)


def _another_make(make: Make, limits: Field) -> Violation:
    count = make.offering.bit_count()
    return Violation(
        limits.path,
        f"{count} of the instance types {'has' if count == 1 else 'have'} {make.resources[0]}, but the pool has no limit on it",
        hint=f"add a limit of {make.resources[0]}, or require one manufacturer",
        why=f"The limits of the pool are on other accelerators. Nothing limits how many nodes Karpenter launches for Pods that request {make.resources[0]}.",
    )


def _and(limits: Field) -> str:
    """Name the resources that are limited."""
    return " and ".join(key for key in ("cpu", "memory") if limits[key])


def _meant_for(resource: str, key: str) -> bool:
    """Tell whether a limit is on a resource under a wrong name: `nvidia.com/gpus`, `requests.nvidia.com/gpu`, `gpu`."""
    domain, _, name = resource.partition("/")
    bare = key.casefold().removeprefix("requests.").removeprefix("limits.").removesuffix("s")
    return key != resource and bare in {resource, f"{domain.partition('.')[0]}/{name}", name}
