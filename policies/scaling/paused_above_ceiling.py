"""ScaledObject that is paused at more replicas than its maximum.

## Why is this bad?
KEDA scales the workload to the number of the annotation, without comparing it with `maxReplicaCount`, and keeps that many
replicas until the annotation is removed. Karpenter launches GPU nodes for all of them, also without any load.

## Instead
Pause at a number within the maximum, or raise the maximum if the workload needs that many replicas:

```yaml
metadata:
  annotations:
    autoscaling.keda.sh/paused-replicas: "8"
spec:
  maxReplicaCount: 8
```

A ScaledObject is reported if its workload requests GPUs or is not known. `scaling/unbounded-replicas` reports a number above
the maximum of the platform, and `scaling/gpu-ceiling` a number that needs too many GPUs. This policy then reports nothing.

## Sources
KEDA v2.20.2 `controllers/keda/scaledobject_controller.go` (handlePause, scaleTargetToPausedCount: it sets the number and
deletes the autoscaler), `apis/keda/v1alpha1/scaledobject_types.go` (GetPausedReplicaCount),
`apis/keda/v1alpha1/scaledobject_webhook.go` (no check of the annotation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling._scaled_objects import highest_stance, maximum, paused_at
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.objects import SCALED_OBJECT
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import TARGET_NEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_SAME_CAUSE: Final = ("scaling/unbounded-replicas", "scaling/gpu-ceiling")


@validates(SCALED_OBJECT, mode=Stance.WARN, needs=TARGET_NEEDS)
def check(scaled_object: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Compare the number of paused replicas with the maximum."""
    paused, most = paused_at(scaled_object), maximum(scaled_object)
    if paused is None or paused[1] <= most:
        return
    annotation, replicas = paused
    at_most = ctx.derived(highest_stance)
    if at_most:
        default = "" if scaled_object["spec", "maxReplicaCount"] else ", KEDA's default"
        message = f"paused at {replicas} replicas, above maxReplicaCount {most}{default}"
        hint = f"write {most} or less, or remove the annotation"
        yield Violation(annotation.path, message, at_most, hint, same_as=_SAME_CAUSE)
