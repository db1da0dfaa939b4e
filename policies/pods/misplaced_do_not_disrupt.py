"""Annotation do-not-disrupt on a workload that never ends, or where Karpenter does not read it.

## Why is this bad?
Karpenter never consolidates or updates a node on which a Pod with `karpenter.sh/do-not-disrupt: "true"` runs. The Pods of
a Deployment, StatefulSet or DaemonSet run without end, so a GPU node stays even when it is almost empty. When it reaches
its `expireAfter`, it takes no new Pods, and is paid for until the Pod is deleted or the `terminationGracePeriod` ends.

## Instead
Delete the annotation from servers, and protect their replicas with a PodDisruptionBudget. If only the start must not be
disturbed, write a duration (Karpenter 1.12 or later):

```yaml
metadata:
  annotations:
    karpenter.sh/do-not-disrupt: 30m    # from the start of the Pod
```

Write the annotation into the Pod template. Karpenter reads it on Pods and on nodes, and Kubernetes does not copy the
annotations of a workload to its Pods.

Three cases are reported, in workloads that request GPUs:

- a Deployment or StatefulSet of class inference with `"true"` in its Pod template;
- a DaemonSet with `"true"` in its Pod template, also without a GPU if it tolerates the taint of GPU nodes. Pods of a
  DaemonSet count for Karpenter like any other;
- a Deployment, StatefulSet, Job or CronJob with the annotation on itself and not in its Pod template.

Training, and Jobs with the annotation in their Pod template, are not reported here. `pods/endless-job` reports Jobs
without an end. Pods that select a node group are not reported either, because Karpenter does not disrupt its nodes.

## Sources
Karpenter v1.14.1 `pkg/controllers/state/statenode.go` ValidatePodsDisruptable (Pods of DaemonSets block disruption too),
`pkg/utils/pod/scheduling.go` IsDoNotDisruptActive; Karpenter v1.14 documentation "Disruption"; Kubernetes v1.36
`pkg/controller/controller_utils.go` GetPodFromTemplate (a Pod gets the annotations of its template);
kubernetes-sigs/karpenter issues 1789, 1928 and 2802.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._node_groups import is_of_node_group
from gpugate.policies.pods._placement import POOL_NEED, gpu_tolerations
from gpugate.policies.sdk import objects
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.policy import AnyContext, validates
from gpugate.policies.sdk.queues import QUEUE_NEEDS
from gpugate.policies.sdk.scale_targets import template_contexts
from gpugate.policies.sdk.workload_class import CLASS_NEEDS, owner_kind, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_KEY: Final = "karpenter.sh/do-not-disrupt"
_ANNOTATION: Final = ("metadata", "annotations", _KEY)
_KINDS: Final = (objects.DEPLOYMENT, objects.STATEFUL_SET, objects.DAEMON_SET, objects.JOB, objects.CRON_JOB)
_SERVING: Final = (objects.DEPLOYMENT, objects.STATEFUL_SET)


@validates(*_KINDS, mode=Stance.WARN, at_most=Stance.WARN, needs=(*CLASS_NEEDS, *QUEUE_NEEDS, POOL_NEED))
def check(workload: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report the annotation if it keeps a node indefinitely, or has no effect."""
    kind = ctx.request.kind_among(_KINDS)
    own = workload[_ANNOTATION]
    for pods in template_contexts(kind, workload, ctx):
        written = pods.subject[_ANNOTATION]
        on_pods = written.text == "true" and kind in {*_SERVING, objects.DAEMON_SET}
        on_workload = bool(own) and own.text not in {"", "false"} and not written and kind is not objects.DAEMON_SET
        if not (on_pods or on_workload) or owner_kind(workload, ctx) or pods.derived(is_of_node_group):
            continue
        demand = pods.derived(gpu_demand)
        if not demand and demand.doubt:
            yield demand.doubt
        elif on_workload and demand:
            yield _without_effect(kind.name, own, written)
        elif kind is objects.DAEMON_SET and (demand or pods.derived(gpu_tolerations)):
            message = f'{_KEY}: "true" keeps Karpenter from removing every node that the DaemonSet runs on'
            why = "GPU nodes stay when they are empty, and Karpenter cannot update them."
            yield Violation(written.path, message, hint="delete the annotation", fix=_removed(written), why=why)
        elif demand and kind in _SERVING and pods.derived(workload_class).name == "inference":
            message = (
                f'{_KEY}: "true" keeps Karpenter from consolidating and updating the nodes of a {kind.name} that serves'
            )
            hint = "delete the annotation, and add a PodDisruptionBudget; or write how long a Pod needs to start, such as 30m"
            yield Violation(written.path, message, hint=hint, fix=_removed(written))


def _without_effect(kind: str, own: Field, wanted: Field) -> Violation:
    why = "Karpenter reads the annotation on Pods, and Kubernetes does not copy it to them: the Pods are not protected."
    reason = "is written into the Pod template, where Karpenter reads it"
    moved = Patch("set", wanted.path, own.value, reason), Patch("remove", own.path, None, reason)
    hint = f"move the annotation to {'.'.join(map(str, wanted.path[:-1]))}, or delete it"
    message = f"{_KEY} on the {kind} itself has no effect on its Pods"
    return Violation(own.path, message, hint=hint, fix=Patches(moved), why=why)


def _removed(annotation: Field) -> Patches:
    return Patches((Patch("remove", annotation.path, None, "lets Karpenter consolidate and update the nodes"),))
