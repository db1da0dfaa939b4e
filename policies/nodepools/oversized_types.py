"""GPU NodePool whose smallest instance type is over four times what its workloads request.

## Why is this bad?
The first Pod starts a whole node, and the other accelerators of the node stay idle. A Pod with one GPU on a `p5.48xlarge`
costs as much as eight. At night, when one replica is left, the node costs as much as at noon.

## Instead
Allow smaller types in the pool, or in another pool that the workload tolerates:

```yaml
requirements:
  - key: node.kubernetes.io/instance-type
    operator: In
    values: [p5.4xlarge, p5.48xlarge]    # 1 and 8 GPUs
```

The policy adds up what the known workloads request that the pool can launch nodes for: their replicas, or the parallelism
of Jobs. It reports the pool if the smallest type that any NodePool can launch for one of them has over four times this
number of accelerators, and if EC2 has a smaller type with the same accelerator, or with as much GPU memory, on which a
Pod fits. It names what one Pod costs in an hour.

It reports only where all NodePools are known. It does not report:

- Workloads that a pool of unknown instance types or with a fixed number of nodes can serve.
- Clusters with GPU nodes that Karpenter did not launch, because Pods may run there.

## Sources
Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/nodeclaim.go` (filterInstanceTypesByRequirements);
pytorch/ci-infra issue 607; EC2 types and on-demand prices of us-east-1 as of 2026-07-20.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.accelerators import PROVISIONED_BY_KARPENTER
from gpugate.policies.data.instance_types import ACCELERATOR_NAME, GPU_NAME
from gpugate.policies.nodepools._gpu_pools import with_gpu_types
from gpugate.policies.nodepools.shared_by_classes import WORKLOAD_NEEDS, gpu_workloads
from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.facts import Known, Need, derived
from gpugate.policies.sdk.findings import Other, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES, NODE_POOL_LABEL
from gpugate.policies.sdk.objects import NODE, NODE_POOL
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.provisioning import (
    PROVISIONING_NEEDS,
    can_launch,
    launch_pool,
    launch_pools,
    launched_types,
)
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.nodepools.shared_by_classes import GpuWorkload
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import MatchingTypes
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.provisioning import LaunchPool

_TIMES: Final = 4
_GPU_MEMORY: Final = f"{AWS}/instance-gpu-memory"
_ARCHITECTURE: Final = "kubernetes.io/arch"


@validates(
    NODE_POOL,
    mode=Stance.AUDIT,
    needs=(*PROVISIONING_NEEDS, *WORKLOAD_NEEDS, Need(NODE, ("metadata.labels", "status.capacity"))),
    tables=(INSTANCE_TYPES,),
)
def check(pool: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a pool whose smallest type is far larger than the requests of its workloads."""
    yield from with_gpu_types(pool, ctx, _violations)


class _Choice(Struct, frozen=True):
    """The smallest type for a workload: its pool, its position, and its number of accelerators."""

    pool: str
    at: int
    count: int


def _violations(pool: Field, types: MatchingTypes, ctx: AnyContext) -> Iterator[Violation]:
    fact = ctx.facts.list(NODE_POOL)
    if not isinstance(fact, Known) or not fact.complete or _has_other_nodes(ctx):
        return
    own = ctx.derived(launch_pool)
    if own.static or own.closed or own.offer is None:
        return
    for resource in sorted(PROVISIONED_BY_KARPENTER & types.catalogue.allocatable.keys()):
        least = _least(own.offer.within & types.catalogue.offering(resource), resource, types.catalogue)
        if least is None or least.count <= _TIMES:
            continue
        served = [
            workload
            for workload in ctx.derived(gpu_workloads)
            if workload.pods > 0 and resource in workload.wanted.whole and not workload.wanted.claims
        ]
        served = [workload for workload in served if can_launch(own, workload.wanted)]
        total = sum(workload.pods * workload.wanted.whole[resource] for workload in served)
        if not served or total * _TIMES >= least.count:
            continue
        others = [other for other in launch_pools(ctx) if other.name != own.name]
        choices = [_choice(workload, resource, (own, *others)) for workload in served]
        far_larger = [choice for choice in choices if choice and total * _TIMES < choice.count]
        if len(far_larger) == len(served):
            yield from _violation(pool, resource, served, far_larger, types.catalogue)


def _violation(
    pool: Field, resource: str, served: list[GpuWorkload], choices: list[_Choice], catalogue: InstanceTypes
) -> Iterator[Violation]:
    workload, choice = min(zip(served, choices, strict=True), key=lambda pair: (pair[1].count, pair[0].display_name))
    smaller = _smaller(workload, resource, choice, catalogue)
    if smaller is None:
        return
    name, amount = pool["metadata", "name"].text, workload.wanted.whole[resource]
    more = f" and {len(served) - 1} more" if len(served) > 1 else ""
    request = "requests" if len(served) == 1 else "request"
    message = (
        f"{workload.display_name}{more} {request} {amount} {resource} per Pod, and the smallest instance type for it is "
        f"{_priced(choice.at, catalogue)} with {choice.count}"
    )
    yield Violation(
        pool["spec", "template", "spec", "requirements"].path,
        message,
        hint=f"allow a smaller instance type such as {_priced(smaller, catalogue)}",
        others=() if choice.pool == name else (Other("NodePool", "", choice.pool),),
        follows=choice.pool != name,
    )


def _choice(workload: GpuWorkload, resource: str, pools: tuple[LaunchPool, ...]) -> _Choice | None:
    """Return the smallest type that any pool can launch for a workload; None if it is unknown."""
    choices = []
    for pool in pools:
        if can_launch(pool, workload.wanted):
            types = launched_types(pool, pool.offer, workload.wanted) if pool.offer and not pool.static else 0
            least = _least(types, resource, pool.offer.types.catalogue) if pool.offer else None
            if least is None:
                return None
            choices.append(_Choice(pool.name, least.at, least.count))
    return min(choices, key=lambda choice: (choice.count, choice.pool), default=None)


def _least(types: int, resource: str, catalogue: InstanceTypes) -> _Choice | None:
    """Return the type with the smallest amount of a resource; of several the cheapest."""
    scale = catalogue.allocatable[resource]
    for number in scale.numbers:
        having = types & ~scale.at_least(number + 1)
        if having:
            return _Choice("", _cheapest(having, catalogue), number)
    return None


def _smaller(workload: GpuWorkload, resource: str, choice: _Choice, catalogue: InstanceTypes) -> int | None:
    """Return the cheapest type with fewer accelerators that fits a Pod, with the same GPU or as much GPU memory."""
    wanted = workload.wanted
    fewer = catalogue.offering(resource) & ~catalogue.allocatable[resource].at_least(choice.count)
    fewer &= catalogue.allocatable[resource].at_least(wanted.whole[resource])
    fewer &= catalogue.of(_ARCHITECTURE, catalogue.label(_ARCHITECTURE, choice.at))
    for name, amount in wanted.whole.items():
        if name in {"cpu", "memory"}:
            fewer &= catalogue.allocatable[name].at_least(amount if name == "cpu" else -(-amount // 2**20))
    possible = 0
    for required in wanted.alternatives:
        possible |= scheduling.matching(required, catalogue)
    fewer &= possible
    label = GPU_NAME if catalogue.label(GPU_NAME, choice.at) else ACCELERATOR_NAME
    same = fewer & catalogue.of(label, catalogue.label(label, choice.at))
    memory = catalogue.label(_GPU_MEMORY, choice.at)
    alike = same
    if memory and not same:
        alike = fewer & catalogue.scales[_GPU_MEMORY].at_least(int(memory))
    return _cheapest(alike, catalogue) if alike else None


def _cheapest(types: int, catalogue: InstanceTypes) -> int:
    return min(catalogue.positions_in(types), key=lambda at: (catalogue.prices[at] or math.inf, at))


def _priced(at: int, catalogue: InstanceTypes) -> str:
    """Return the name of a type, with its price if it is known."""
    price = catalogue.prices[at]
    return f"{catalogue.names[at]} ({price:.2f} USD an hour)" if price else catalogue.names[at]


def _has_other_nodes(ctx: AnyContext) -> bool:
    """Tell whether a known node with accelerators was not launched by Karpenter."""
    fact = ctx.facts.list(NODE)
    return isinstance(fact, Known) and derived(fact, _other_nodes, ctx)


def _other_nodes(nodes: Known, ctx: AnyContext) -> bool:
    return any(
        NODE_POOL_LABEL not in node["metadata", "labels"].mapping
        and any(ctx.platform.is_accelerator(name) for name in node["status", "capacity"].mapping)
        for node in nodes.items
    )
