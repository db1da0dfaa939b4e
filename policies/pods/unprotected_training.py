"""Training Pod that Karpenter may evict to save cost.

## Why is this bad?
When Karpenter evicts the Pod, its work since the last checkpoint is lost and must be repeated at the full cost of the
GPUs. Karpenter evicts Pods when it consolidates nodes and when it replaces nodes that drifted. The annotation
`karpenter.sh/do-not-disrupt: "true"` prevents that while the Pod runs.

It prevents nothing else. A Spot interruption, the end of the node pool's `expireAfter`, a preemption by the scheduler
and the deletion of the node all end the Pod. So does drift if the node pool has a `terminationGracePeriod`. Write
checkpoints, run training on on-demand or reserved capacity, and set `expireAfter: Never` on its node pool.

## Instead
gpugate adds the missing annotation to Pods that train and request a GPU. An existing value is not changed; `"false"`
on a Pod that trains is reported. Pods of a DaemonSet never get it, because they would keep their nodes indefinitely.
Pods that select a node group (of EKS, AKS, kOps) or nodes of GKE by a label such as
`cloud.google.com/gke-accelerator` do not get it either, because Karpenter does not disrupt these nodes.

gpugate recognizes a Pod that trains by its labels, by a framework that only trains (such as a PyTorchJob), or by a
training launcher in its command (`torchrun`, `accelerate launch`, `deepspeed`, `horovodrun`, `python -m
torch.distributed.run`, `mpirun` with a script such as `train.py`).

Some Pods possibly train: Pods of a RayJob, MPIJob, JobSet or Volcano Job, Pods of an indexed or parallel Job, and Pods
that run a script such as `train.py`. They are protected too, because an annotation costs little. No other policy treats
them as training. Benchmarks (`all_reduce_perf`, `nvbandwidth`), servers and inference are not protected. If gpugate
protects a Pod that does not train, label it `gpugate.dev/workload-class: batch`.

```yaml
metadata:
  annotations:
    karpenter.sh/do-not-disrupt: "true"
```

With Karpenter 1.12 or later, the parameter `value` of this policy can be a duration. With `12h`, the Pod is protected
only for the first 12 hours after its start. A training run that hangs thus cannot keep its GPUs indefinitely.

## Sources
- Annotation and values: Karpenter v1.14.1 `pkg/apis/v1/labels.go`, `pkg/utils/pod/scheduling.go`; durations since
  v1.12.0.
- What it does not stop: Karpenter v1.14 documentation, "Disruption"; `pkg/controllers/disruption`,
  `pkg/controllers/nodeclaim/expiration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from gpugate.policies.pods._node_groups import is_of_node_group
from gpugate.policies.pods._placement import POOL_NEED
from gpugate.policies.sdk.findings import Patch, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.platform import WorkloadClass, at_least
from gpugate.policies.sdk.policy import Context, mutates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.queues import QUEUE_NEEDS
from gpugate.policies.sdk.workload_class import CLASS_LABEL, CLASS_NEEDS, owner_kind, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.workload_class import Classified

_KEY = "karpenter.sh/do-not-disrupt"
_DURATIONS_SINCE = "1.12"
# "true", or a positive Go duration.
_Protection = Annotated[
    str,
    msgspec.Meta(pattern=r"^(true|(?=.*[1-9])([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)$(?!\n)"),
]


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which Pods are protected, and for how long.

    Attributes:
        classes: the workload classes whose GPU Pods are protected.
        value: what the annotation is set to: "true", or a duration such as "12h" (Karpenter 1.12 or later).
    """

    classes: tuple[WorkloadClass, ...] = ("training",)
    value: _Protection = "true"


@mutates(POD, params=Params, needs=(*CLASS_NEEDS, *QUEUE_NEEDS, POOL_NEED), concerns=MAY_DEMAND)
def mutate(pod: Field, ctx: Context[Params]) -> Iterator[Patch | Violation | Skip]:
    """Add the annotation if the Pod trains on GPUs and does not set it itself."""
    demand = ctx.derived(gpu_demand)
    if not (demand or demand.unresolved):
        return
    classified = ctx.derived(workload_class)
    if owner_kind(pod, ctx) == "DaemonSet" or ctx.derived(is_of_node_group):
        return
    if not {classified.name, classified.conflict, classified.possible} & set(ctx.params.classes):
        if classified.doubt:
            yield classified.doubt
        return
    if not demand and demand.doubt:
        yield demand.doubt
        return
    if classified.conflict:
        message = f"has the class {classified.name} ({classified.source}), but its owner is for {classified.conflict}"
        why = f"Policies treat the Pod as {classified.name}: if its class is {classified.conflict}, they do not protect it."
        yield Violation(pod["metadata", "labels"].path, message, Stance.WARN, "set both to the same class", why=why)
    if {classified.name, classified.possible} & set(ctx.params.classes):
        yield from _annotated(pod, ctx, classified)


def _annotated(pod: Field, ctx: Context[Params], classified: Classified) -> Iterator[Patch | Violation]:
    annotation = pod["metadata", "annotations", _KEY]
    if annotation.text == "false" and classified.name in ctx.params.classes:
        message = f'{_KEY} is "false", so Karpenter may evict this {classified.name} Pod ({classified.source})'
        yield Violation(
            annotation.path, message, Stance.WARN, 'set the annotation to "true", unless the Pod may be evicted'
        )
    if annotation:
        return
    value = ctx.params.value
    if value != "true" and not at_least(ctx.target.karpenter, _DURATIONS_SINCE):
        version = ctx.target.karpenter
        message = f'{_KEY}: {value} needs Karpenter {_DURATIONS_SINCE}, the target is {version}: set to "true" instead'
        why = "Karpenter before 1.12 reads a duration as no annotation at all."
        yield Violation(
            annotation.path, message, Stance.WARN, 'set the parameter value: "true" of this policy', why=why
        )
        value = "true"
    if classified.name in ctx.params.classes:
        reason = f"which keeps Karpenter from evicting {classified.name} Pods (detected as {classified.name} by: {classified.source})"
    else:
        reason = f"because it may train ({classified.source}); label the Pod {CLASS_LABEL}: batch if it does not"
    yield Patch("set", annotation.path, value, f'adds {_KEY}: "{value}", {reason}')
