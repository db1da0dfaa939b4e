"""Ray cluster that keeps its GPUs while no job runs.

## Why is this bad?
The GPU workers run until the cluster is deleted. Their GPUs are idle and paid for, and no other Pod can use them.

## Instead
Let KubeRay delete the cluster of a RayJob when the job has finished:

```yaml
apiVersion: ray.io/v1
kind: RayJob
spec:
  shutdownAfterJobFinishes: true
  ttlSecondsAfterFinished: 600    # time to read logs and the dashboard
```

Let Ray remove the idle workers of a RayCluster:

```yaml
apiVersion: ray.io/v1
kind: RayCluster
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
    - groupName: gpu
      minReplicas: 0
```

A RayJob is reported if its cluster has GPU Pods that Ray does not remove, and neither `shutdownAfterJobFinishes` nor
`deletionStrategy` is set. With `enableInTreeAutoscaling`, these are `minReplicas` of each group and the head. A RayJob with
`clusterSelector` or `schedule` uses one cluster for several jobs and is not reported.

A RayCluster is reported if it has GPU workers without `enableInTreeAutoscaling`. There are two exceptions:

- The cluster may serve a model, because its containers have their own command, arguments, probe or `postStart` hook.
- A controller owns the cluster, such as a RayJob or RayService.

## Sources
KubeRay v1.6.0 `ray-operator/apis/ray/v1/rayjob_types.go` (`shutdownAfterJobFinishes` is false by default),
`controllers/ray/rayjob_controller.go` (without it and `deletionStrategy`, the cluster stays),
`controllers/ray/utils/util.go` GetWorkerGroupDesiredReplicas, `apis/ray/v1/raycluster_types.go` (`idleTimeoutSeconds` is read
by the Ray autoscaler only); ray-project/kuberay issues 1023 and 2998; Kueue documentation "Run a RayCluster" (a cluster
holds its quota while it exists).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, gpu_demand
from gpugate.policies.sdk.objects import RAY_CLUSTER, RAY_CRON_JOB, RAY_JOB
from gpugate.policies.sdk.policy import AnyContext, validates
from gpugate.policies.sdk.scale_targets import template_contexts
from gpugate.policies.sdk.workload_class import owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Kind

_WORKERS: Final = "workerGroupSpecs"
_OWN: Final = ("command", "args", "livenessProbe", "readinessProbe", "startupProbe")


class _RemainingPods(NamedTuple):
    """The GPU Pods of a cluster that Ray does not remove.

    Attributes:
        pods: the number of Pods.
        names: the resources and device classes that they request.
        doubt: why there may be more; None if all are known.
    """

    pods: int
    names: tuple[str, ...]
    doubt: Skip | None


@validates(RAY_JOB, RAY_CRON_JOB, mode=Stance.WARN, at_most=Stance.WARN, needs=CLAIM_NEEDS)
def check_job(job: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a RayJob whose cluster remains after the job has finished."""
    kind = ctx.request.kind_among((RAY_JOB, RAY_CRON_JOB))
    spec = job["spec"] if kind is RAY_JOB else job["spec", "jobTemplate"]
    shutdown = spec["shutdownAfterJobFinishes"]
    shared = spec["deletionStrategy"] or spec["clusterSelector"] or spec["schedule"]
    if owner_kind(job, ctx) or shutdown.value is True or shared:
        return
    remaining = _remaining_pods(kind, job, spec["rayClusterSpec"], ctx, with_head=True)
    if not remaining.pods:
        yield from [remaining.doubt] if remaining.doubt else ()
        return
    value = "is false" if shutdown else "is not set"
    reason = "deletes the cluster when the job has finished"
    yield Violation(
        shutdown.path,
        f"shutdownAfterJobFinishes {value}: the cluster keeps {_printable(remaining)} after the job has finished",
        hint=f"set {'.'.join(map(str, shutdown.path))}: true",
        fix=Patches((Patch("set", shutdown.path, value=True, reason=reason),)),
        why="The GPUs are idle and paid for until the RayJob is deleted, and no other Pod can use them.",
    )


@validates(RAY_CLUSTER, mode=Stance.WARN, at_most=Stance.WARN, needs=CLAIM_NEEDS)
def check_cluster(cluster: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a RayCluster whose GPU workers remain while no job runs."""
    spec = cluster["spec"]
    autoscaling = spec["enableInTreeAutoscaling"]
    if owner_kind(cluster, ctx) or autoscaling.value is True or spec["suspend"].value is True:
        return
    if any(_starts_something(pods.subject) for pods in template_contexts(RAY_CLUSTER, cluster, ctx)):
        return
    remaining = _remaining_pods(RAY_CLUSTER, cluster, spec, ctx, with_head=False)
    if not remaining.pods:
        yield from [remaining.doubt] if remaining.doubt else ()
        return
    yield Violation(
        autoscaling.path,
        f"enableInTreeAutoscaling is {'false' if autoscaling else 'not set'}: {_printable(remaining)} {'stays' if remaining.pods == 1 else 'stay'} while no job runs",
        hint="set enableInTreeAutoscaling: true and a minReplicas of 0 for GPU workers, or run each job as a RayJob "
        "with shutdownAfterJobFinishes: true",
    )


def _remaining_pods(kind: Kind, owner: Field, cluster: Field, ctx: AnyContext, *, with_head: bool) -> _RemainingPods:
    scaled = cluster["enableInTreeAutoscaling"].value is True
    total, names, doubt = 0, dict[str, None](), None
    for pods in template_contexts(kind, owner, ctx):
        index = pods.subject.path[-2]
        group = cluster[_WORKERS, index] if isinstance(index, int) else None
        count = int(with_head) if group is None else _workers(group, scaled=scaled)
        if not count:
            continue
        demand = pods.derived(gpu_demand)
        doubt = doubt or demand.doubt
        if demand:
            total += count
            names |= dict.fromkeys(demand.names)
    return _RemainingPods(total, tuple(names), doubt)


def _workers(group: Field, *, scaled: bool) -> int:
    """Return the number of Pods of a group that Ray does not remove."""
    if group["suspend"].value is True:
        return 0
    least = group["minReplicas"].integer or 0
    most = group["maxReplicas"].integer
    replicas = least if scaled else max(group["replicas"].integer or 0, least)
    hosts = group["numOfHosts"].integer
    return (replicas if most is None else min(replicas, most)) * (1 if hosts is None else hosts)


def _starts_something(pod: Field) -> bool:
    """Tell whether a container does more than the `ray start` that KubeRay writes, such as serving a model."""
    return any(
        any(container[name] for name in _OWN) or container["lifecycle", "postStart"]
        for container in pod["spec", "containers"]
    )


def _printable(remaining: _RemainingPods) -> str:
    return f"{remaining.pods} {'Pod' if remaining.pods == 1 else 'Pods'} with {', '.join(remaining.names)}"
