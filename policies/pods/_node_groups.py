"""Whether a Pod is bound to nodes that Karpenter does not start: those of node groups, or one that is there already.

Karpenter disrupts its own nodes only, and only they have its labels. What it reads of a Pod has no effect elsewhere, and a
Pod that also selected `karpenter.sh/capacity-type` would stay Pending.

Sources: labels of nodes in the documentation of EKS (managed node groups), eksctl, GKE (node pools, and the labels that it gives to nodes), AKS (use of labels) and
kOps (instance groups), as of 2026-11-22; Karpenter v1.14.1 `pkg/controllers/state/statenode.go` (it manages nodes that have
a NodeClaim).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._placement import named_node
from gpugate.policies.sdk.facts import object_contexts
from gpugate.policies.sdk.node_pools import pool_requirements
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.queues import admission
from gpugate.policies.sdk.scheduling import alternatives

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scheduling import Requirements

_NODE_GROUPS: Final = frozenset(
    {
        "agentpool",
        "alpha.eksctl.io/nodegroup-name",
        "eks.amazonaws.com/capacityType",
        "eks.amazonaws.com/nodegroup",
        "kops.k8s.io/instancegroup",
        "kubernetes.azure.com/agentpool",
    }
)
# GKE creates every node with such a label, for example `gke-nodepool`, `gke-accelerator` and `gke-tpu-topology`.
_OF_GKE: Final = "cloud.google.com/gke-"
_HOSTNAME: Final = "kubernetes.io/hostname"


def is_of_node_group(_pod: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod selects nodes of a node group by a label that no known NodePool gives to its nodes.

    The labels of flavors that its Kueue queue may assign count as selected.
    """
    selecting = [
        _selected_groups(required)
        for placement in admission(ctx).placements
        for required in placement.ctx.derived(alternatives)
    ]
    if not all(selecting):
        return False
    pool_labels = {
        key for around in object_contexts(ctx.facts.list(NODE_POOL), ctx) for key in around.derived(pool_requirements)
    }
    return all(keys - pool_labels for keys in selecting)


def is_bound(pod: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod selects nodes of a node group, or names its node by `nodeName` or the host name label."""
    return (
        named_node(pod) is not None
        or all(_HOSTNAME in _required(required) for required in ctx.derived(alternatives))
        or ctx.derived(is_of_node_group)
    )


def _selected_groups(required: Requirements) -> frozenset[str]:
    return frozenset(key for key in _required(required) if key in _NODE_GROUPS or key.startswith(_OF_GKE))


def _required(required: Requirements) -> frozenset[str]:
    """Return the labels that a node must have."""
    return frozenset(key for key, requirement in required.items() if requirement.operator in {"In", "Exists"})
