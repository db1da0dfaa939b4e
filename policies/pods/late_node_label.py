"""Pod that selects a node label which exists only after the node has started.

## Why is this bad?
Karpenter launches no node for the Pod, because it does not know which instance types get the label. The Pod stays Pending until
a node with the label exists for another reason. The labels are written by GPU Feature Discovery, the GPU operator or Node
Feature Discovery on a node that runs.

## Instead
Select a label that Karpenter knows before it launches a node:

```yaml
nodeSelector:
  karpenter.k8s.aws/instance-gpu-name: h100    # instead of nvidia.com/gpu.product
```

The policy reports a Pod only if gpugate finds a NodePool, and no NodePool that it finds has the label in its template or
requirements. Not reported are:

- Pods of DaemonSets.
- Pods that select nodes of a node group, or one node by its name.
- Pods that select a label that a known node has, if Karpenter did not launch this node.

If you write such a label into the template of a NodePool, use the value that will be detected on the node. If you write another
value, Karpenter launches a node, the label is overwritten, and the Pod cannot run there.

## Sources
Karpenter v1.14.1 `pkg/scheduling/requirements.go` (Compatible: "does not have known values"), kubernetes-sigs/karpenter issue
1219; NVIDIA k8s-device-plugin v0.17 `docs/gpu-feature-discovery/README.md` (labels); Node Feature Discovery v0.17 "Feature
labels"; Karpenter AWS provider v1.14.1 "Well-Known Labels".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._node_groups import is_bound
from gpugate.policies.pods._placement import LATE_LABELS, POOL_NEED, given_labels, is_of_daemon_set
from gpugate.policies.sdk.facts import Known, Need, derived, object_contexts
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.node_pools import AWS, NODE_POOL_LABEL, provider
from gpugate.policies.sdk.objects import NODE, NODE_POOL, POD
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.queues import QUEUE_NEEDS
from gpugate.policies.sdk.scheduling import REQUIRED, alternatives, selecting_by
from gpugate.policies.sdk.workload_class import ceiling_of_templates, owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

# The corresponding labels of Karpenter's AWS provider; for the product, the model without its memory.
_SAME_ON_AWS: Final = {
    "nvidia.com/gpu.count": "karpenter.k8s.aws/instance-gpu-count",
    "nvidia.com/gpu.family": "karpenter.k8s.aws/instance-gpu-name",
    "nvidia.com/gpu.machine": "node.kubernetes.io/instance-type",
    "nvidia.com/gpu.memory": "karpenter.k8s.aws/instance-gpu-memory",
    "nvidia.com/gpu.present": "karpenter.k8s.aws/instance-gpu-manufacturer",
    "nvidia.com/gpu.product": "karpenter.k8s.aws/instance-gpu-name",
}


@validates(
    POD,
    mode=Stance.WARN,
    needs=(*QUEUE_NEEDS, POOL_NEED, Need(NODE, ("metadata.labels",))),
    concerns=selecting_by(*(f"{prefix}*" for prefix in LATE_LABELS)),
)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report the first late label of a Pod or template, if each of its alternatives selects one."""
    if (ctx.wrapper is None and owner_kind(pod, ctx)) or is_of_daemon_set(pod, ctx):
        return
    pools = ctx.facts.list(NODE_POOL)
    if not isinstance(pools, Known) or not pools.items:
        return
    named = _late_labels(pod)
    if not named or is_bound(pod, ctx):
        return
    provided = derived(pools, given_labels, ctx) | _of_own_nodes(ctx)
    selected = [
        {key for key, r in required.items() if key.startswith(LATE_LABELS) and r.operator in {"In", "Exists"}}
        - provided
        for required in ctx.derived(alternatives)
    ]
    if not all(selected):
        return
    late = frozenset[str]().union(*selected)
    key, field = next(label for label in named if label[0] in late)
    same = _SAME_ON_AWS.get(key) if derived(pools, _are_of_aws, ctx) else None
    hint = f"select {same} instead" if same else "select a label that Karpenter or a NodePool gives to its nodes"
    message = f"selects label {key}, which exists only after a node has started"
    yield Violation(field.path, message, ceiling_of_templates(ctx), hint)


def _late_labels(pod: Field) -> list[tuple[str, Field]]:
    """Return the late labels that a Pod names, with their fields."""
    selector = pod["spec", "nodeSelector"]
    labels = [(key, selector[key]) for key in selector.mapping if key.startswith(LATE_LABELS)]
    for term in pod[REQUIRED]:
        for expression in term["matchExpressions"]:
            key = expression["key"]
            if key.text.startswith(LATE_LABELS) and expression["operator"].text not in {"NotIn", "DoesNotExist"}:
                labels.append((key.text, key))
    return labels


def _are_of_aws(pools: Known, ctx: AnyContext) -> bool:
    return all(provider(pool.subject, pool) == AWS for pool in object_contexts(pools, ctx))


def _of_own_nodes(ctx: AnyContext) -> frozenset[str]:
    """Return the late labels of known nodes that Karpenter did not launch."""
    nodes = ctx.facts.list(NODE)
    return derived(nodes, _late_of_others, ctx) if isinstance(nodes, Known) else frozenset()


def _late_of_others(nodes: Known, _: AnyContext) -> frozenset[str]:
    return frozenset(
        key
        for node in nodes.items
        if NODE_POOL_LABEL not in (labels := node["metadata", "labels"].mapping)
        for key in labels
        if key.startswith(LATE_LABELS)
    )
