"""GPU pool without a limit on its GPUs.

## Why is this bad?
Without a limit a pool starts as many GPU nodes as Pods ask for: a Job of 1000 Pods with 8 H100 each, started by mistake,
costs 55,000 USD an hour. A limit on a name that does not exist, such as `nvidia.com/gpus`, limits nothing.

## Instead
Limit what Pods ask for, under `spec.limits`, for each make of accelerator that the pool can launch:

```yaml
limits:
  nvidia.com/gpu: "32"
```

A limit of `nodes` is as good, and so are the `replicas` of a static pool, which takes no other limit than `nodes`. A
limit of `"0"` switches a pool off, and is fine. Limits of `cpu` and `memory` cap GPUs too, but nobody sees at how many:
up to `at_most_indirect` GPUs that is a warning. So is a make that is not limited beside one that is, where the pool has it
only because a requirement is wide, as the category `g` has types with AMD GPUs.

A pool is one for GPUs if its requirements name types, families, categories or GPUs that have an accelerator, whatever
other types they name too. A pool that allows GPU types only because it names none is not.

Limits are per pool, and what starts at the same moment can overrun them.

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
    """How many accelerators are too many.

    Attributes:
        max_per_pool: the most accelerators, counted as whole devices, that one pool may be allowed; none where absent.
        at_most_indirect: where only cpu or memory are limited, up to how many accelerators that is a warning and no
            denial.
    """

    max_per_pool: Annotated[int, msgspec.Meta(ge=1)] | None = None
    at_most_indirect: Annotated[int, msgspec.Meta(ge=0)] = 64


@validates(NODE_POOL, params=Params, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report the makes of accelerator that nothing limits, and limits above the platform's own."""
    yield from with_gpu_types(pool, ctx, _found)


def _found(pool: Field, types: MatchingTypes, ctx: Context[Params]) -> Iterator[Violation]:
    found = tuple(make for make in makes(types) if make.offering)
    yield from _too_many(pool, types, found, ctx.params.max_per_pool)
    limits = node_pools.limits(pool)
    if pool["spec", "replicas"] or "nodes" in limits:
        return
    unlimited = tuple(make for make in found if limits.keys().isdisjoint(make.resources))
    if unlimited and len(unlimited) == len(found):
        yield from _nothing_limited(pool, types, unlimited, ctx.params)
    else:
        yield from (_another_make(make, types, pool["spec", "limits"]) for make in unlimited)


def _too_many(pool: Field, types: MatchingTypes, found: tuple[Make, ...], most: int | None) -> Iterator[Violation]:
    if most is None or not found:
        return
    limits = node_pools.limits(pool)
    for make in found:
        field = pool["spec", "limits", make.resources[0]]
        if limits.get(make.resources[0], 0) > most:
            message = f"the limit of {field.value} {make.resources[0]} is above {most}, the most for one pool"
            yield Violation(field.path, message, hint=f"write {most} or less", why=_ABOVE)
    if pool["spec", "replicas"] or limits.keys().isdisjoint(make.resources[0] for make in found):
        per_node = max(most_devices(make, types.catalogue) for make in found)
        nodes = pool["spec", "limits", "nodes"] if "nodes" in limits else pool["spec", "replicas"]
        count = limits.get("nodes", pool["spec", "replicas"].integer or 0)
        if count * per_node > most:
            message = (
                f"{nodes.value} nodes of up to {per_node} accelerators are more than {most}, the most for one pool"
            )
            fitting = most // per_node
            hint = f"write {fitting} or less" if fitting else f"require types with {most} accelerators or fewer"
            yield Violation(nodes.path, message, hint=hint, why=_ABOVE)


def _nothing_limited(
    pool: Field,
    types: MatchingTypes,
    unlimited: tuple[Make, ...],
    params: Params,
) -> Iterator[Violation]:
    resource = unlimited[0].resources[0]
    limits = pool["spec", "limits"]
    hint = f"limit {resource} under spec.limits"
    for key, field in limits.items():
        if _meant_for(resource, key):
            reason = f"limits {resource}, the resource that Pods ask for"
            renamed = (
                Patch("remove", field.path, None, reason),
                Patch("set", limits[resource].path, field.value, reason),
            )
            message = f"the limit on {key} limits nothing: the resource is {resource}"
            yield Violation(field.path, message, hint=f"rename it to {resource}", fix=Patches(renamed))
            return
    bounds = [reachable(make, node_pools.limits(pool), types.catalogue) for make in unlimited]
    most = max((bound for bound in bounds if bound is not None), default=None)
    if most is None:
        yield Violation(limits.path, f"nothing limits how many {resource} the pool may have", hint=hint)
    elif most > (params.max_per_pool or 0):
        at_most = Stance.ENFORCE if most > params.at_most_indirect else Stance.WARN
        message = f"limits no {resource}: its other limits let it have up to {most}"
        why = f"Pods can start all of them by mistake: limits of {_and(limits)} do not say how many GPUs they allow."
        yield Violation(limits.path, message, at_most, hint, why=why)


def _another_make(make: Make, types: MatchingTypes, limits: Field) -> Violation:
    count = make.offering.bit_count()
    return Violation(
        limits.path,
        f"{count} of the instance types {'has' if count == 1 else 'have'} {make.resources[0]}, which nothing limits",
        at_most=Stance.WARN if is_minor(make, types) else Stance.ENFORCE,
        hint=f"limit {make.resources[0]} too, or require one manufacturer",
        why=f"Limits on other accelerators do not bound how many nodes Pods that ask for {make.resources[0]} can start.",
    )


def _and(limits: Field) -> str:
    """Name the resources that are limited."""
    return " and ".join(key for key in ("cpu", "memory") if limits[key])


def _meant_for(resource: str, key: str) -> bool:
    """Tell whether a limit is on a resource under a wrong name: `nvidia.com/gpus`, `requests.nvidia.com/gpu`, `gpu`."""
    domain, _, name = resource.partition("/")
    bare = key.casefold().removeprefix("requests.").removeprefix("limits.").removesuffix("s")
    return key != resource and bare in {resource, f"{domain.partition('.')[0]}/{name}", name}
