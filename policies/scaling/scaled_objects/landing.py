"""How many accelerators the node pools that a workload can land on may have.

A pool is left out only when it surely takes none of the Pods: its taints, its labels or its instance types rule them
out, as Karpenter v1.14.1 decides it (`pkg/controllers/provisioning/scheduling`, `pkg/scheduling/requirements.go`
Compatible: a label that neither is well known nor stands in the pool is refused).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.facts import Known, Need, each
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, limits, matching_types, pool_requirements
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.platform import Taint
from gpugate.policies.sdk.scheduling import is_only, normalized, tolerated

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.quantity import Amount

POOL_NEEDS: Final = (Need(NODE_POOL, ("spec.limits", "spec.template")),)
# What of a Pod template decides where its Pods land, beside its resources.
PLACEMENT_FIELDS: Final = ("spec.template.spec.nodeSelector", "spec.template.spec.tolerations")
_POOL: Final = "karpenter.sh/nodepool"
_KEEPS_OFF: Final = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class Room:
    """What some pools allow together of one resource, and their names."""

    amount: Amount
    pools: tuple[str, ...]


def shortage(template: Field, resource: str, count: int, replicas: int, ctx: AnyContext) -> Room | str | None:
    """Return what the pools that may take Pods with `count` of a resource allow, where it is too little for all.

    None where it is enough, where one of them has no limit, or there is none; a text says why it cannot be told.
    """
    pools = ctx.facts.list(NODE_POOL)
    if not isinstance(pools, Known):
        return pools.reason
    if not pools.complete:
        return "not all node pools are known"
    known = each(pools, ctx)
    limited = [(limit, pool) for pool in known if (limit := limits(pool.subject).get(resource)) is not None]
    unlimited = [pool for pool in known if resource not in limits(pool.subject)]
    total: Amount = 0
    names = []
    # The largest first: mostly they are enough, and no other has to be looked at.
    for limit, pool in sorted(limited, key=lambda each: each[0], reverse=True):
        if _may_take(pool, template, resource, count):
            total += limit
            names.append(pool.subject["metadata", "name"].text)
        if total >= replicas * count:
            return None
    if not names or any(_may_take(pool, template, resource, count) for pool in unlimited):
        return None
    return Room(total, tuple(sorted(names)))


def _may_take(pool: AnyContext, template: Field, resource: str, count: int) -> bool:
    types = pool.derived(matching_types)
    offered = types.catalogue.allocatable.get(resource) if types else None
    if types and offered and not types.unknown and not types.known & offered.at_least(count):
        return False
    required = {**pool.derived(pool_requirements), _POOL: is_only(pool.subject["metadata", "name"].text)}
    for key, value in template["spec", "nodeSelector"].labels.items():
        requirement = required.get(normalized(key))
        if requirement is None and "/" not in key:
            return False
        if requirement is not None and not requirement.allows(value):
            return False
    # Pods are given the tolerations of their accelerators when they come.
    given = {taint.key for taint in pool.platform.taints_of(resource)}
    taints = (t for t in pool.subject["spec", "template", "spec", "taints"] if t["effect"].text in _KEEPS_OFF)
    return all(
        taint["key"].text in given
        or tolerated(template, Taint(key=taint["key"].text, value=taint["value"].text), taint["effect"].text)
        for taint in taints
    )


TABLES: Final = (INSTANCE_TYPES,)
