"""Job with GPUs that may run without end.

## Why is this bad?
A run that hangs keeps its GPUs until the Job is deleted, and they are paid for all the while. A lost connection between
workers, a data loader that waits or a script that never exits are enough.

## Instead
Set the longest time that the Job may take:

```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: tuning
spec:
  activeDeadlineSeconds: 86400    # one day
```

| kind | field |
|---|---|
| Job, RayJob | `spec.activeDeadlineSeconds` |
| CronJob | `spec.jobTemplate.spec.activeDeadlineSeconds` |
| RayCronJob | `spec.jobTemplate.activeDeadlineSeconds` |
| ScaledJob | `spec.jobTargetRef.activeDeadlineSeconds` |
| JobSet | `activeDeadlineSeconds` of a Job in `spec.replicatedJobs` |
| JAXJob, MPIJob, PaddleJob, PyTorchJob, TFJob, XGBoostJob | `spec.runPolicy.activeDeadlineSeconds` |

These also count as an end: `activeDeadlineSeconds` of the Pods, the label `kueue.x-k8s.io/max-exec-time-seconds`, a
command that runs under `timeout`, and the annotation `karpenter.sh/do-not-disrupt` with a duration instead of `"true"`.
The policy evaluates the Job, and not each of its Pods. A Job that a controller owns, such as that of a CronJob, is
reported at its owner only.

## Sources
Kubernetes v1.36 `batch/v1` JobSpec (a Job that exceeds its deadline fails, and its Pods are deleted); Kubeflow
training-operator v1.9.4 and mpi-operator v0.6.0 RunPolicy; JobSet v0.12.0 `jobset_types.go` (a JobSet has no deadline,
only its Jobs have one); KubeRay `ray-operator/apis/ray/v1/rayjob_types.go`; KEDA v2.20.2 `scaledjob_types.go`; Kueue
documentation "Workload", maximum execution time; Karpenter v1.14.1 `pkg/utils/pod/scheduling.go`;
open-policy-agent/gatekeeper-library pull request 737.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk import objects
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, gpu_demand
from gpugate.policies.sdk.policy import AnyContext, validates
from gpugate.policies.sdk.scale_targets import template_contexts
from gpugate.policies.sdk.workload_class import owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Kind

_DEADLINE: Final = "activeDeadlineSeconds"
# The path of the object with the deadline, by kind. Each Job of a JobSet has its own.
_RUN_POLICY: Final = ("spec", "runPolicy")
_HOMES: Final[dict[Kind, tuple[str, ...]]] = {
    objects.JOB: ("spec",),
    objects.CRON_JOB: ("spec", "jobTemplate", "spec"),
    objects.SCALED_JOB: ("spec", "jobTargetRef"),
    objects.RAY_JOB: ("spec",),
    objects.RAY_CRON_JOB: ("spec", "jobTemplate"),
    objects.JAX_JOB: _RUN_POLICY,
    objects.MPI_JOB: _RUN_POLICY,
    objects.PADDLE_JOB: _RUN_POLICY,
    objects.PYTORCH_JOB: _RUN_POLICY,
    objects.TF_JOB: _RUN_POLICY,
    objects.XGBOOST_JOB: _RUN_POLICY,
}
_KUEUE: Final = "kueue.x-k8s.io/max-exec-time-seconds"
_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
# The most characters of a word of a command that is searched.
_LONGEST_WORD: Final = 16 * 1024
_TIMEOUT: Final = re.compile(r"(?:^|[\s;&|(/])timeout\s")
_PINNED: Final = (
    "A run that hangs keeps its GPUs until the Job is deleted, and karpenter.sh/do-not-disrupt keeps Karpenter from "
    "removing the nodes."
)


@validates(*_HOMES, objects.JOB_SET, mode=Stance.WARN, at_most=Stance.WARN, needs=CLAIM_NEEDS)
def check(job: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a Job with GPUs that nothing ends."""
    kind = ctx.request.kind_among((*_HOMES, objects.JOB_SET))
    if owner_kind(job, ctx) or job["metadata", "labels", _KUEUE] or any(home[_DEADLINE] for home in _homes(kind, job)):
        return
    templates = [(pods.subject, pods.derived(gpu_demand)) for pods in template_contexts(kind, job, ctx)]
    with_gpus = [(pod, demand) for pod, demand in templates if demand]
    if not with_gpus:
        yield from (demand.doubt for _, demand in templates if demand.doubt)
        return
    if any(_ends(pod) for pod, _ in with_gpus):
        return
    home = next(_homes(kind, job), job["spec"])
    names = ", ".join(dict.fromkeys(name for _, demand in with_gpus for name in demand.names))
    pinned = any(pod["metadata", "annotations", _DO_NOT_DISRUPT].text == "true" for pod, _ in with_gpus)
    yield Violation(
        home[_DEADLINE].path,
        f"missing {_DEADLINE}: a run that hangs keeps its {names} until the {kind.name} is deleted",
        hint=f"set {'.'.join(map(str, home[_DEADLINE].path))} to the longest time that the {kind.name} may take",
        why=_PINNED if pinned else "",
    )


def _homes(kind: Kind, job: Field) -> Iterator[Field]:
    """Yield the objects that may have the deadline."""
    if kind is objects.JOB_SET:
        yield from (replicated["template", "spec"] for replicated in job["spec", "replicatedJobs"])
    else:
        yield job[_HOMES[kind]]


def _ends(pod: Field) -> bool:
    """Tell whether the Pods of a template end by themselves, or may be evicted after some time."""
    annotation = pod["metadata", "annotations", _DO_NOT_DISRUPT].text
    return bool(
        pod["spec", _DEADLINE]
        or annotation not in {"", "true", "false"}
        or any(_runs_under_timeout(container) for container in pod["spec", "containers"])
    )


def _runs_under_timeout(container: Field) -> bool:
    words = (*container["command"].texts, *container["args"].texts)
    return any(
        word.rpartition("/")[2] == "timeout" or _TIMEOUT.search(word) for word in words if len(word) <= _LONGEST_WORD
    )
