"""NodePool that can launch nodes with and without accelerators.

## Why is this bad?
In a pool with a taint for GPUs: Pods that tolerate the taint and request no GPU get nodes without a GPU from this pool. A limit
on GPUs does not bound these nodes.

In a pool without a taint: Pods that request a GPU can get nodes from this pool instead of the pool for GPUs. Then its taint
and its limit do not apply: Pods without a GPU run on the GPU nodes, and nothing bounds the number of GPUs.

## Instead
In a pool for GPUs, require an accelerator:

```yaml
requirements:
  - key: karpenter.k8s.aws/instance-gpu-name
    operator: Exists
```

In a pool for other Pods, exclude accelerators with `DoesNotExist` for `karpenter.k8s.aws/instance-gpu-name` and
`karpenter.k8s.aws/instance-accelerator-name`, or name the categories of types.

A pool without a taint is reported only if all NodePools are known, in a cluster or in files with `--complete-context`,
and another pool is for the same accelerators. Without `minValues`, Karpenter launches a type with an accelerator from it
only for Pods that request one, or if no other type is available. Pools with a limit of `"0"` on the accelerators are not reported. If a GPU pool
has no taint, `nodepools/missing-gpu-taint` reports it.

## Sources
Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/scheduler.go` (a limit bounds the resources that it names; pools
are tried by weight, then by name); aws/karpenter-provider-aws v1.14.1 `pkg/providers/instance/filter/filter.go`
(ExoticInstanceTypeFilter); EC2 types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.instance_types import ACCELERATOR_NAME, GPU_NAME, INSTANCE_TYPE
from gpugate.policies.nodepools._accelerators import makes
from gpugate.policies.nodepools._instance_choice import edited, listed_names
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.facts import Known, Need, derived, object_contexts
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import (
    INSTANCE_TYPES,
    accelerator_taint_keys,
    is_gpu_pool,
    matching_types,
)
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scheduling import HARD_EFFECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import MatchingTypes
    from gpugate.policies.sdk.policy import AnyContext

_BOUNDS_ALL: Final = frozenset({"cpu", "memory", "nodes"})
_WITHOUT_GPU: Final = "Pods that tolerate the taint and request no GPU get nodes without a GPU from this pool."
_UNBOUNDED: Final = " Its limits do not bound these nodes."
_BYPASS: Final = "Pods that request a GPU can get nodes from this pool, where the taint and the limit of the pool for GPUs do not apply."
_FEW: Final = 5


@validates(
    NODE_POOL,
    mode=Stance.WARN,
    needs=(Need(NODE_POOL, ("spec.limits", "spec.template")),),
    tables=(INSTANCE_TYPES,),
)
def check(pool: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report types without accelerators in a pool with a taint for them, and the reverse in a pool without the taint."""
    types = ctx.derived(matching_types)
    if types is None:
        yield node_pools.types_doubt(pool, ctx)
        return
    template = pool["spec", "template", "spec"]
    if not types.accelerated or not types.others or _is_unintended_bound(types) or not template:
        return
    taints = {t["key"].text for t in template["taints"] if t["effect"].text in HARD_EFFECTS}
    if ctx.derived(is_gpu_pool):
        if taints & accelerator_taint_keys(ctx):
            yield _in_gpu_pool(pool, types)
    elif not taints:
        yield from _in_general_pool(pool, types, ctx)


def _is_unintended_bound(types: MatchingTypes) -> bool:
    """Tell whether a bound and a NotIn of one label together allow types without the label, which is another fault."""
    return any(
        requirement.operator == "NotIn" and (requirement.gte is not None or requirement.lte is not None)
        for requirement in types.requirements.values()
    )


def _in_gpu_pool(pool: Field, types: MatchingTypes) -> Violation:
    count, total = types.others.bit_count(), types.known.bit_count()
    limits = node_pools.limits(pool)
    why = _WITHOUT_GPU + (_UNBOUNDED if limits and limits.keys().isdisjoint(_BOUNDS_ALL) else "")
    names = listed_names(types.catalogue.decode(types.others)) if count <= _FEW else ""
    message = (
        f"{count} of the {total} instance types of this GPU pool {'has' if count == 1 else 'have'} no accelerator"
        + (f" ({names})" if names else "")
    )
    listing = next((e for e in types.entries if e.key == INSTANCE_TYPE and e.requirement.operator == "In"), None)
    if listing is not None and names and types.requirements[INSTANCE_TYPE].values == listing.requirement.values:
        return Violation(edited(listing.field).path, message, hint=f"remove {names} from the values", why=why)
    with_gpu = types.catalogue.having(GPU_NAME)
    label = GPU_NAME if types.accelerated & with_gpu else ACCELERATOR_NAME
    path = pool["spec", "template", "spec", "requirements"].path
    return Violation(path, message, hint=f"add the requirement {label} Exists", why=why)


def _in_general_pool(pool: Field, types: MatchingTypes, ctx: AnyContext) -> Iterator[Violation]:
    limits = node_pools.limits(pool)
    offered = {
        make.resources[0]: make.offering.bit_count()
        for make in makes(types)
        if make.offering and limits.get(make.resources[0]) != 0
    }
    fact = ctx.facts.list(NODE_POOL)
    if not offered or not isinstance(fact, Known) or not fact.complete:
        return
    own = pool["metadata", "name"].text
    rivals = derived(fact, _of_gpu_pools, ctx)
    for resource, count in offered.items():
        rival = next((name for name in sorted(rivals) if name != own and resource in rivals[name]), "")
        if not rival:
            continue
        yield Violation(
            pool["spec", "template", "spec", "requirements"].path,
            f"allows {count} instance types with {resource}, for which NodePool {rival} exists, and has no taint",
            hint=f"add the requirements {GPU_NAME} DoesNotExist and {ACCELERATOR_NAME} DoesNotExist",
            why=_BYPASS,
        )
        return


def _of_gpu_pools(known: Known, ctx: AnyContext) -> dict[str, frozenset[str]]:
    """Return the accelerator resources of each pool for accelerators."""
    resources: dict[str, frozenset[str]] = {}
    for around in object_contexts(known, ctx):
        types = around.derived(matching_types)
        if types and around.derived(is_gpu_pool):
            name = around.subject["metadata", "name"].text
            resources[name] = frozenset(make.resources[0] for make in makes(types))
    return resources
