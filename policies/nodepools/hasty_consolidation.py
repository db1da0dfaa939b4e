"""Inference NodePool whose Pods are moved before they have started to serve.

## Why is this bad?
Each Pod that Karpenter moves waits again for a node, an image and a model, which takes minutes on GPU nodes. With
`WhenEmptyOrUnderutilized`, Karpenter may move the Pods of a little-used node as soon as `consolidateAfter` has passed
since the last Pod was bound or removed. It counts from the moment when the Pod is bound to the node, and not from the
moment when the Pod is ready. A value below the time that a model needs to load therefore moves Pods that have not served
a request.

In a published measurement of one vLLM server, 966 seconds passed from the request for a GPU to the first answer. 548 of
them came after the Pod was bound: pulling the image, loading the model and warming up.

Karpenter's defaults are `WhenEmptyOrUnderutilized` and `0s`. A pool without `disruption` has them.

## Instead
```yaml
disruption:
  consolidationPolicy: WhenEmptyOrUnderutilized
  consolidateAfter: 15m
```

Or write `consolidationPolicy: WhenEmpty`, if Pods must not be moved at all.

The policy requires `min_after`. If workloads are known that select the pool, it also requires the time before which their
Pods cannot be ready: the `initialDelaySeconds` of a startup or readiness probe.

A pool counts as an inference pool by its labels: `gpugate.dev/workload-class: inference`, `workload: inference` or
`node-type: gpu-inference`. Training pools are reported by `nodepools/training-consolidates`. Pools with `spec.replicas`
are not reported, because Karpenter does not consolidate them.

## Sources
Karpenter v1.14.1 `pkg/controllers/nodeclaim/podevents/controller.go` (a Pod that is bound, ends or is removed),
`pkg/controllers/nodeclaim/disruption/consolidation.go` (Consolidatable), `pkg/apis/crds/karpenter.sh_nodepools.yaml`
(defaults); kaito-project/kaito issue 2325 (measured cold start); aws/karpenter-provider-aws issue 3594.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._gpu_pools import if_gpu_pool, is_static, is_training
from gpugate.policies.nodepools.shared_by_classes import WORKLOAD_NEEDS, gpu_workloads, selects
from gpugate.policies.sdk import durations
from gpugate.policies.sdk.durations import Duration, DurationError
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, pool_classes
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_UNREADY: Final = (
    "Karpenter counts from the moment when a Pod is bound, so it can move Pods that have not served a request: each waits "
    "again for a node, an image and a model."
)
_PROBES: Final = ("startupProbe", "readinessProbe")


class Params(PolicyParams, frozen=True, kw_only=True):
    """How soon Karpenter may move Pods.

    Attributes:
        min_after: how long a node must be unchanged before Karpenter moves its Pods.
    """

    min_after: Duration = "1m"


@validates(NODE_POOL, params=Params, mode=Stance.WARN, needs=WORKLOAD_NEEDS, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report a wait that is too short in general, or for a known workload of the pool."""
    if "inference" in pool_classes(pool, ctx) and not is_training(pool, ctx) and not is_static(pool):
        yield from if_gpu_pool(pool, ctx, _violations(pool, ctx))


def _violations(pool: Field, ctx: Context[Params]) -> Iterator[Violation]:
    disruption = pool["spec", "disruption"]
    after = disruption["consolidateAfter"]
    try:
        wait = durations.parse(after.text)
    except DurationError:  # Never, or a value that the API server rejects
        return
    if disruption["consolidationPolicy"].text == "WhenEmpty":
        return
    name, delay = _slowest(pool, ctx)
    required = f"{delay}s"
    if wait < durations.parse(required):
        message = f"consolidateAfter is {after.text}, but the Pods of {name} are not ready before {required}"
        why = _UNREADY
    elif wait < durations.parse(ctx.params.min_after):
        required = ctx.params.min_after
        message = f"consolidateAfter is {after.text} (minimum for inference pools: {required})"
        why = ""
    else:
        return
    hint = f"write consolidateAfter: {required} or more, or consolidationPolicy: WhenEmpty"
    reason = f"sets consolidateAfter: {required}, so that Karpenter moves fewer Pods before they are ready"
    yield Violation(after.path, message, hint=hint, fix=Patches((Patch("set", after.path, required, reason),)), why=why)


def _slowest(pool: Field, ctx: AnyContext) -> tuple[str, int]:
    """Return the known workload of a pool whose Pods need longest to be ready, and the least number of seconds."""
    delays = [
        (_delay(workload.template), workload.display_name)
        for workload in ctx.derived(gpu_workloads)
        if selects(workload, pool, ctx)
    ]
    delay, name = max(delays, default=(0, ""))
    return name, delay


def _delay(pods: Field) -> int:
    """Return the seconds before which Pods of a template cannot be ready."""
    return max(
        (
            container[probe, "initialDelaySeconds"].integer or 0
            for container in pods["spec", "containers"]
            for probe in _PROBES
        ),
        default=0,
    )
