"""Training Pod that may run on Spot capacity.

## Why is this bad?
When EC2 takes a Spot instance back, two minutes after its notice, the work since the last checkpoint is lost. The
annotation `karpenter.sh/do-not-disrupt` does not prevent that.

Without a node selector, Karpenter chooses the node pool with the highest weight among those whose taints the training
Pod tolerates. That may be a Spot pool, or a pool for inference, which Karpenter consolidates often.

## Instead
Select the nodes for training and their capacity type.

```yaml
nodeSelector:
  karpenter.sh/capacity-type: on-demand # or reserved
```

If your nodes for training also have another label, such as `node-type`, select that too. If gpugate finds the Kueue
flavors of the workload's queue, it treats their node labels as part of the Pod's node selector. If it does not find
them, the Pod is not evaluated.

A training Pod is reported in three cases:

- The Pod selects Spot.
- The Pod does not exclude Spot, and gpugate finds a NodePool that may run it on Spot.
- The Pod excludes Spot, but selects no training nodes and names no NodePool, and gpugate finds a NodePool for inference
  that may run it.

A Pod that selects no training nodes and names no NodePool could run on a NodePool that gpugate does not know. Such a
Pod passes only if gpugate has found all NodePools; otherwise it counts as not evaluated. A Pod that cannot run on nodes
of Karpenter is not reported. Such a Pod selects the label of an EKS managed node group, a GKE node pool or similar, or
names one host by its host name or by `nodeName`.

gpugate treats a Pod as training only if something shows it: its labels, a framework that only trains (such as a
PyTorchJob), or a training launcher in its command (`torchrun`, `accelerate launch`, `deepspeed`, `horovodrun`). The
finding names which. If a Pod does not train, label it `gpugate.dev/workload-class: batch`. The annotation
`gpugate.dev/checkpointed: "true"` does not prevent the finding, but changes its message.

## Sources
- Weights and requirements: Karpenter v1.14.1 `pkg/apis/v1/nodepool.go`, documentation "Scheduling".
- Flavors: `apis/kueue/v1beta2/resourceflavor_types.go`, Kueue v0.14.
- What do-not-disrupt stops: Karpenter v1.14 documentation, "Disruption".
- Notice of two minutes: Amazon EC2 user guide, "Spot Instance interruption notices".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._node_groups import is_bound
from gpugate.policies.pods._placement import POOL_NEED, gpu_pools
from gpugate.policies.pods._training import evidence_for_class, otherwise, says_checkpointed, trains
from gpugate.policies.sdk.facts import Known, derived, object_contexts
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.node_pools import (
    CAPACITY_TYPE,
    INSTANCE_TYPES,
    NODE_POOL_LABEL,
    capacity_types,
    pool_class,
    pool_requirements,
)
from gpugate.policies.sdk.objects import NODE_POOL, POD
from gpugate.policies.sdk.policy import AnyContext, validates
from gpugate.policies.sdk.queues import QUEUE_NEEDS, admission
from gpugate.policies.sdk.scheduling import alternatives, may_have, selected
from gpugate.policies.sdk.workload_class import CLASS_NEEDS, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.queues import Placement


_INTERRUPTED: Final = "EC2 takes a Spot instance back two minutes after its notice; unsaved work is lost."
_CONSOLIDATED: Final = "Karpenter consolidates nodes for inference often, and an evicted training Pod loses its work since the last checkpoint."


@validates(
    POD,
    mode=Stance.WARN,
    needs=(*CLASS_NEEDS, *QUEUE_NEEDS, POOL_NEED),
    tables=(INSTANCE_TYPES,),
    concerns=MAY_DEMAND,
)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report that the Pod selects Spot, or that a known pool may run it on Spot."""
    demand = ctx.derived(gpu_demand)
    if not demand and demand.doubt and ctx.derived(workload_class).name == "training":
        yield demand.doubt
    if not ctx.derived(trains) or is_bound(pod, ctx):
        return
    queue = admission(ctx)
    unknown: Skip | None = None
    for finding in map(_finding, queue.placements):
        if isinstance(finding, Violation):
            yield finding if "spot" in selected(CAPACITY_TYPE, ctx) else queue.doubt or finding
            return
        unknown = unknown or finding
    if unknown:
        yield queue.doubt or unknown


def _finding(placement: Placement) -> Violation | Skip | None:
    """Report that the Pod, with the additions of a flavor, may run on Spot capacity or with inference."""
    pod, ctx = placement.pod, placement.ctx
    selector = pod["spec", "nodeSelector"]
    if "spot" in selected(CAPACITY_TYPE, ctx):
        where = selector[CAPACITY_TYPE] or pod["spec", "affinity"]
        by = f"ResourceFlavor {placement.flavor} " if CAPACITY_TYPE in placement.added else ""
        message = f"{by}selects Spot capacity for training: {_loss(pod)}"
        return Violation(where.path, f"{message} {evidence_for_class(ctx)}", hint=_hint(ctx), why=_INTERRUPTED)
    # The author of the flavor chooses the nodes by its labels.
    chosen = bool(placement.added) or _chooses(ctx)
    on_spot = may_have(CAPACITY_TYPE, "spot", ctx)
    message = _spot_message(pod, ctx) if on_spot else _company_message(ctx, chosen=chosen)
    if not message:
        return None if chosen or _complete(ctx) else Skip("not all NodePools are known")
    why = _INTERRUPTED if on_spot else _CONSOLIDATED
    return Violation(selector.path, f"{message} {evidence_for_class(ctx)}", hint=_hint(ctx), why=why)


def _spot_message(pod: Field, ctx: AnyContext) -> str:
    """Return the message for a known pool that may run the Pod on Spot; empty if there is none."""
    for match in ctx.derived(gpu_pools):
        if "spot" in capacity_types(match.requirements):
            name = match.pools[0]["metadata", "name"].text
            return f"NodePool {name} may put this training Pod on Spot: {_loss(pod)}"
    return ""


def _company_message(ctx: AnyContext, *, chosen: bool) -> str:
    """Return the message for a known inference pool that may run the Pod; empty if none may, or the Pod selects it."""
    if chosen:
        return ""
    for pool in (pool for match in ctx.derived(gpu_pools) for pool in match.pools):
        if pool_class(pool, ctx) == "inference":
            name = pool["metadata", "name"].text
            return f"NodePool {name} is for inference, but may run this training Pod and be consolidated"
    return ""


def _complete(ctx: AnyContext) -> bool:
    fact = ctx.facts.list(NODE_POOL)
    return isinstance(fact, Known) and fact.complete


def _training_labels(ctx: AnyContext) -> Iterator[tuple[str, str]]:
    """Return the labels of the platform's nodes for training."""
    for key, classes in ctx.platform.classes.node_selectors.items():
        yield from ((key, value) for value, name in classes.items() if name == "training")


def _chooses(ctx: AnyContext) -> bool:
    """Tell whether the Pod selects nodes for training, or one pool, whose capacity types other policies report."""
    if any(NODE_POOL_LABEL not in required for required in ctx.derived(alternatives)):
        return any(selected(key, ctx) == {value} for key, value in _training_labels(ctx))
    return True


def _loss(pod: Field) -> str:
    if says_checkpointed(pod):
        return "an interruption loses the work since the last checkpoint"
    return "do-not-disrupt does not prevent an interruption"


def _hint(ctx: AnyContext) -> str:
    pools = ctx.facts.list(NODE_POOL)
    provided = derived(pools, _labels_of_nodes, ctx) if isinstance(pools, Known) else frozenset()
    own = () if _chooses(ctx) else _training_labels(ctx)
    # A label that no node has would leave the Pod Pending; shipped labels are only a convention.
    label = next((f"{key}: {value} and " for key, value in own if _is_configured(ctx) or (key, value) in provided), "")
    where = "" if isinstance(pools, Known) and pools.items else "on nodes of Karpenter, "
    return f"{where}add {label}{CAPACITY_TYPE}: on-demand (or reserved) to nodeSelector{otherwise(ctx)}"


def _is_configured(ctx: AnyContext) -> bool:
    return ctx.platform.workload_classes is not None


def _labels_of_nodes(pools: Known, ctx: AnyContext) -> frozenset[tuple[str, str]]:
    """Return all labels, with all values, of the nodes of known NodePools."""
    return frozenset(
        (key, value)
        for around in object_contexts(pools, ctx)
        for key, requirement in around.derived(pool_requirements).items()
        if requirement.operator == "In"
        for value in requirement.values
    )
