"""Distributed job with GPUs on several nodes that nothing schedules as a whole.

## Why is this bad?
If the cluster has GPUs for some of the Pods only, these Pods hold their GPUs and wait for the others. Nothing is computed, and
the GPUs are paid for. Two such jobs can wait for each other without end.

## Instead
Let a queue or a gang scheduler start all Pods or none, such as Kueue with the label of a queue:

```yaml
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: llama
  labels:
    kueue.x-k8s.io/queue-name: research
```

Kueue starts a job if the whole job is within the quota. `waitForPodsReady` in its configuration also stops a job whose Pods do not
all become ready.

A job is reported if all of these are true:

- Its Pods work only together: it is a JAXJob, MPIJob, PaddleJob, PyTorchJob or XGBoostJob, or a Job or JobSet that starts
  `torchrun`, `accelerate` or `deepspeed` for several nodes. Of an elastic PyTorchJob, its least number of workers counts.
- Its Pods request more GPUs together than any node has on which one of them fits: an EC2 instance type that the Pods select, or 16
  GPUs if the nodes may be other machines.
- It has no queue of Kueue or KAI, no scheduler other than the default, no Pod group, no `schedulingPolicy`, no exclusive topology of a
  JobSet and no scheduling gate, and no owner.

It is not reported if a LocalQueue `default` is in its namespace, because Kueue writes this queue into jobs, or if gpugate finds an
operator of Kubeflow that runs with `--gang-scheduler-name` or `--gang-scheduling`: that operator makes Pod groups for all jobs.

## Sources
Kueue v0.14 "All-or-nothing with ready Pods" and "Setup LocalQueue defaulting"; Kubeflow training-operator v1.9.4
`cmd/training-operator.v1/main.go` (gang-scheduler-name), `pkg/apis/kubeflow.org/v1/common_types.go` (SchedulingPolicy),
`pytorch_types.go` (ElasticPolicy); mpi-operator v0.6.0 `cmd/mpi-operator/app/options` (gang-scheduling); JobSet v0.12.0
`jobset_types.go` (ExclusiveKey); Volcano v1.15.1 `apis/scheduling/v1beta1` (KubeGroupNameAnnotationKey); scheduler-plugins v0.33
`apis/scheduling/v1alpha1` (PodGroupLabel); Kubernetes v1.36 "Gang Scheduling", "Scheduling Group" (alpha);
kubernetes-sigs/kueue issue 2796, kubeflow/trainer issue 165, cncf/toc pull request 2164.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._distributed import KINDS, spread, workers
from gpugate.policies.sdk.facts import Known, Need, derived, named
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, PROVIDER_NEED
from gpugate.policies.sdk.objects import DEPLOYMENT, LOCAL_QUEUE
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.queues import QUEUE_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_DEFAULT_SCHEDULER: Final = "default-scheduler"
# Labels that name a queue, or the group with which Pods are scheduled; annotations too.
_GROUPS: Final = (
    QUEUE_LABEL,
    "gang.scheduling.koordinator.sh/name",
    "kai.scheduler/queue",
    "kueue.x-k8s.io/pod-group-name",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "runai/queue",
    "scheduling.k8s.io/group-name",
    "scheduling.x-k8s.io/pod-group",
    "yunikorn.apache.org/task-group-name",
    "alpha.jobset.sigs.k8s.io/exclusive-topology",
)
# Kueue v0.14 `pkg/controller/constants` (DefaultLocalQueueName).
_DEFAULT_QUEUE: Final = "default"
_OPERATOR: Final = re.compile(r"--?gang-schedul(?:er-name|ing)=.")


@validates(
    *KINDS,
    mode=Stance.WARN,
    at_most=Stance.WARN,
    needs=(
        *CLAIM_NEEDS,
        PROVIDER_NEED,
        Need(LOCAL_QUEUE, ()),
        Need(DEPLOYMENT, ("spec.template.spec.containers.args", "spec.template.spec.containers.command")),
    ),
    tables=(INSTANCE_TYPES,),
)
def check(job: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report a job whose Pods need several nodes at once, if nothing schedules them together."""
    if any(job["metadata", "ownerReferences"]) or _is_grouped(job):
        return
    groups = workers(job, ctx)
    beyond = spread(groups)
    if (
        beyond is None
        or any(_is_scheduled_otherwise(group.ctx.subject) for group in groups)
        or _is_grouped_by_others(ctx)
    ):
        return
    yield Violation(
        beyond.largest.field.path,
        f"{beyond} work only together, and nothing schedules them as a group",
        hint=f"add label {QUEUE_LABEL} with the name of a queue of Kueue, or use a gang scheduler",
    )


def _is_grouped(job: Field) -> bool:
    """Tell whether a job names a queue or a group, or is suspended until a controller starts it."""
    policy = job["spec", "runPolicy"]
    return bool(
        _names_group(job["metadata"])
        or policy["schedulingPolicy"]
        or policy["suspend"].value is True
        or job["spec", "suspend"].value is True
        or any(_names_group(replicated["template", "metadata"]) for replicated in job["spec", "replicatedJobs"])
    )


def _is_scheduled_otherwise(pod: Field) -> bool:
    """Tell whether the Pods of a template are gated, grouped, or scheduled by another than the default scheduler."""
    spec = pod["spec"]
    return bool(
        spec["schedulerName"].text not in {"", _DEFAULT_SCHEDULER}
        or any(spec["schedulingGates"])
        or spec["schedulingGroup"]
        or spec["workloadRef"]
        or _names_group(pod["metadata"])
    )


def _names_group(metadata: Field) -> bool:
    return any(key in metadata[block].mapping for block in ("labels", "annotations") for key in _GROUPS)


def _is_grouped_by_others(ctx: AnyContext) -> bool:
    """Tell whether Kueue assigns a queue to the job, or a known operator groups the Pods of every job."""
    if named(ctx.facts.list(LOCAL_QUEUE, ctx.request.namespace), _DEFAULT_QUEUE) is not None:
        return True
    deployments = ctx.facts.list(DEPLOYMENT)
    return isinstance(deployments, Known) and derived(deployments, _has_operator, ctx)


def _has_operator(deployments: Known, _: AnyContext) -> bool:
    return any(
        _OPERATOR.match(word)
        for deployment in deployments.items
        for container in deployment["spec", "template", "spec", "containers"]
        for words in (container["command"], container["args"])
        for word in words.texts
    )
