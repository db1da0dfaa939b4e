"""The NodePools that a Pod may get its node from, as Karpenter decides it.

Source: Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/nodeclaim.go`, `pkg/scheduling/requirements.go`
(Compatible: a label that the pool does not define must be one that Karpenter knows), `taints.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods.placement.gpu_nodes import tolerates_pool_taint
from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.facts import Need, each
from gpugate.policies.sdk.node_pools import AUTO_MODE, AWS, INSTANCE_TYPES, pool_requirements, provider
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.scheduling import alternatives

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import GpuDemand
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scheduling import Requirements

POOL_NEED: Final = Need(NODE_POOL, ("spec.template",))
_NODE_POOL_LABEL: Final = "karpenter.sh/nodepool"
# Labels that a pool need not define to have them.
_KNOWN: Final = ("karpenter.sh/", "karpenter.k8s.aws/", "node.kubernetes.io/", "kubernetes.io/", "topology.")


def pools_for(pod: Field, demand: GpuDemand, ctx: AnyContext) -> Iterator[tuple[Field, Requirements]]:
    """Yield the known NodePools that may launch a node for the Pod, with what both require of it together.

    Where a pool's types are not known, it may.
    """
    fact = ctx.facts.list(NODE_POOL)
    wanted = ctx.derived(alternatives)
    for around in each(fact, ctx):
        pool = around.subject
        if not all(tolerates_pool_taint(pod, taint) for taint in pool["spec", "template", "spec", "taints"]):
            continue
        own = {
            **around.derived(pool_requirements),
            _NODE_POOL_LABEL: scheduling.is_only(pool["metadata", "name"].text),
        }
        for required in wanted:
            both = _both(own, required)
            if both is not None and _offers(pool, both, demand, ctx):
                yield pool, both


def _both(own: Requirements, required: Requirements) -> Requirements | None:
    """Return what both require; None where no node has it."""
    found = dict(own)
    for key, requirement in required.items():
        if key not in own and requirement.operator in {"In", "Exists"} and not key.startswith(_KNOWN):
            return None
        scheduling.add_requirement(found, key, requirement)
        empty = found[key].operator == "DoesNotExist" and requirement.operator != "DoesNotExist"
        if empty and key in own:
            return None
    return found


def _offers(pool: Field, both: Requirements, demand: GpuDemand, ctx: AnyContext) -> bool:
    if provider(pool, ctx) not in {AWS, AUTO_MODE}:
        return True
    catalogue = ctx.table(INSTANCE_TYPES)
    types = scheduling.matching(both, catalogue)
    for name, count in demand.resources.items():
        scale = catalogue.allocatable.get(name)
        types &= scale.at_least(count) if scale else catalogue.accelerated
    return bool(types & catalogue.accelerated) if demand else bool(types)
