"""Scaling on Prometheus without a usable fallback for times when it is unavailable.

## Why is this bad?
While Prometheus is unavailable, the number of replicas does not follow the load. If the load rises, there are too few
replicas; a workload at zero stays at zero. If the `replicas` of the fallback are below the minimum or above the
maximum, the workload never has that number of replicas.

## Instead
Add a `fallback`. KEDA uses its `replicas` while the metric is unavailable. Choose a number from `minReplicaCount` to
`maxReplicaCount`:

```yaml
spec:
  minReplicaCount: 1
  maxReplicaCount: 8
  fallback:
    failureThreshold: 3
    replicas: 2
```

A missing fallback is reported if the workload requests GPUs. If gpugate does not find the workload, it is reported if a
query reads metrics of model servers or GPUs, or if all workloads of the namespace are known. If `fallback.behavior` is
`currentReplicas` or `scalingModifiers`, KEDA does not use `fallback.replicas`, so that field may have any value.

## Sources
KEDA v2.20.2 `pkg/fallback/fallback.go`, `apis/keda/v1alpha1/scaledobject_types.go` (CheckFallbackValid: no check against
the bounds), `CHANGELOG.md` (v2.18.0: fallback for metrics of type Value; v2.19.0: fallback starts a workload at zero).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling import _scaled_objects
from gpugate.policies.scaling._scaled_objects import highest_stance, maximum, minimum, queries, target_doubt
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.objects import SCALED_OBJECT
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import TARGET_NEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_NUMBER_UNREAD: Final = frozenset({"currentReplicas", "scalingModifiers"})


@validates(SCALED_OBJECT, mode=Stance.WARN, needs=TARGET_NEEDS)
def check(scaled_object: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a fallback that is missing, or outside minimum and maximum."""
    asks = [trigger for trigger, _ in ctx.derived(queries)]
    if not asks:
        return
    at_most = ctx.derived(highest_stance)
    if not at_most:
        return
    fallback = scaled_object["spec", "fallback"]
    if fallback:
        if fallback["behavior"].text not in _NUMBER_UNREAD:
            yield from _outside(scaled_object, fallback["replicas"], at_most)
    # Before 2.18 KEDA rejects one for metrics of type Value (CHANGELOG.md, #6655).
    elif at_least(ctx.target.keda, "2.18") or any(ask["metricType"].text != "Value" for ask in asks):
        doubt = target_doubt(scaled_object, ctx)
        if doubt:
            yield doubt
            return
        patches = tuple(_scaled_objects.set_fallback(scaled_object))
        message = "missing fallback for times when Prometheus is unavailable"
        hint = "add a fallback with the number of replicas for these times"
        yield Violation(fallback.path, message, at_most, hint, Patches(patches) if patches else None)


def _outside(scaled_object: Field, replicas: Field, at_most: Stance) -> Iterator[Violation]:
    number, least, most = replicas.integer, minimum(scaled_object), maximum(scaled_object)
    if number is None or least > most or least <= number <= most:
        return
    name, bound = ("maxReplicaCount", most) if number > most else ("minReplicaCount", least)
    message = f"fallback.replicas is {number}, {'above' if number > most else 'below'} {name} {bound}"
    patch = Patch(
        "set", replicas.path, bound, f"sets the replicas of the fallback to {name}, the number that KEDA uses"
    )
    why = f"Without Prometheus the workload gets {bound} replicas, not the {number} of the fallback."
    hint = f"write a number from {least} to {most}"
    yield Violation(replicas.path, message, at_most, hint, Patches((patch,), safe=True), why=why)
