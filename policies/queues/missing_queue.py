"""GPU workload that names no queue of Kueue or KAI.

## Why is this bad?
The workload does not wait for its share of the GPUs. Without the label, Kueue does not count it: it runs outside the quota, and
takes GPUs from workloads that wait. KAI puts it into `default-queue`.

## Instead
This policy is off by default. Enable it if all GPU workloads must have a queue, and name the system:

```yaml
policies:
  queues/missing-queue:
    mode: warn
    params:
      system: kueue
```

Write the label on the workload; of a CronJob, on its Jobs (`spec.jobTemplate.metadata`):

```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  labels:
    kueue.x-k8s.io/queue-name: research
```

A workload is reported once, and its Pods are not. A bare Pod is denied in mode `enforce`; a workload gets a warning. The label may
be on the workload or on its Pods; for KAI, the label `project` also names a queue. DaemonSets are not reported. For Kueue, nothing
is reported in a namespace with a LocalQueue `default`, because Kueue writes this name into workloads without a queue.

## Sources
Kueue v0.14 `pkg/controller/jobframework/interface.go` (QueueNameForObject), `pkg/controller/constants` (QueueLabel), "Setup
LocalQueue defaulting"; kubernetes-sigs/kueue issues 3637 and 2936; KAI-Scheduler v0.10
`pkg/podgrouper/podgrouper/plugins/defaultgrouper` (CalcPodGroupQueue: labels of the top owner and the Pod, else
`default-queue`) and pull request 932 (an annotation is not read).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from gpugate.policies.sdk.facts import Need, named
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.objects import CRON_JOB, DAEMON_SET, LOCAL_QUEUE, POD
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.queues import QUEUE_LABEL, queue_name
from gpugate.policies.sdk.workload_class import ceiling_of_templates, owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_LABELS: Final = {"kueue": QUEUE_LABEL, "kai": "kai.scheduler/queue"}
_NAMES: Final = {"kueue": "Kueue", "kai": "KAI"}
# KAI v0.10 `pkg/podgrouper` also derives a queue from this label.
_KAI_PROJECT: Final = "project"
# The LocalQueue that Kueue assigns by default (v0.14 `pkg/controller/constants`, DefaultLocalQueueName).
_DEFAULT: Final = "default"
_LONGEST_SHOWN: Final = 63
_FIRST: Final = "first template that requests GPUs and has no queue"


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which queues the platform has.

    Attributes:
        system: the system whose queues workloads name: `kueue` or `kai`.
        label: the key of the label, if the installation sets another than the system's default.
    """

    system: Literal["kueue", "kai"] = "kueue"
    label: Annotated[str, msgspec.Meta(max_length=317)] = ""


@validates(
    POD,
    params=Params,
    mode=Stance.OFF,
    needs=(Need(LOCAL_QUEUE, ()), *CLAIM_NEEDS),
    concerns=MAY_DEMAND,
)
def check(pod: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report a GPU workload, or a bare Pod, without the label of a queue."""
    if ctx.wrapper is None and owner_kind(pod, ctx):
        return
    label = ctx.params.label or _LABELS[ctx.params.system]
    if not ctx.derived(gpu_demand) or _has_queue(pod, label, ctx):
        return
    # One finding for all templates, at the first that requests GPUs.
    if ctx.wrapper and ctx.wrapper.memo.setdefault(_FIRST, pod.path) != pod.path:
        return
    metadata = _metadata(pod, ctx)
    at_most = ceiling_of_templates(ctx)
    system, labels, annotation = _NAMES[ctx.params.system], metadata["labels"], metadata["annotations", label]
    if annotation.text:
        message = (
            f"queue {annotation.text[:_LONGEST_SHOWN]} is an annotation, but {system} reads only the label {label}"
        )
        move = (
            Patch("set", labels[label].path, annotation.text, f"names the queue in the label that {system} reads"),
            Patch("remove", annotation.path, None, f"removes an annotation that {system} does not read"),
        )
        yield Violation(annotation.path, message, at_most, f"write {label} as a label", Patches(move))
    else:
        message = f"missing label {label}: this GPU workload is in no queue of {system}"
        if ctx.params.system == "kai":
            message = f"missing label {label}: KAI puts this GPU workload into its default queue"
        yield Violation(labels.path, message, at_most, f"add label {label} with the name of a queue to the workload")


def _has_queue(pod: Field, label: str, ctx: Context[Params]) -> bool:
    if ctx.wrapper and ctx.wrapper.kind.kind == DAEMON_SET.name:
        return True
    if queue_name(pod, ctx, label):
        return True
    if ctx.params.system == "kai":
        return bool(queue_name(pod, ctx, _KAI_PROJECT))
    return named(ctx.facts.list(LOCAL_QUEUE, ctx.request.namespace), _DEFAULT) is not None


def _metadata(pod: Field, ctx: Context[Params]) -> Field:
    """Return the metadata for the label: that of the workload, of a CronJob's Jobs, or of a bare Pod."""
    if ctx.wrapper is None:
        return pod["metadata"]
    root = ctx.wrapper.root
    return root["spec", "jobTemplate", "metadata"] if ctx.wrapper.kind.kind == CRON_JOB.name else root["metadata"]
