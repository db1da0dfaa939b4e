"""How many Pods a workload has: what it says itself, or what scales it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.facts import Known, Need, derived
from gpugate.policies.sdk.objects import HORIZONTAL_POD_AUTOSCALER, SCALED_OBJECT
from gpugate.policies.sdk.scale_targets import by_target
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scale_targets import ScaleTarget

    _Bounds = tuple[int, int]

# The needs of a policy that reads the replicas of a workload.
SCALER_NEEDS: Final = (
    Need(HORIZONTAL_POD_AUTOSCALER, ("spec.maxReplicas", "spec.minReplicas", "spec.scaleTargetRef")),
    Need(
        SCALED_OBJECT,
        ("spec.idleReplicaCount", "spec.maxReplicaCount", "spec.minReplicaCount", "spec.scaleTargetRef"),
    ),
)
_KEDA_MAXIMUM: Final = 100


class Replicas(Struct, frozen=True):
    """The fewest and the most Pods of a workload; `certain` if no unknown scaler can change them."""

    least: int
    most: int
    certain: bool


def replicas_of(workload: Field, target: ScaleTarget, ctx: AnyContext) -> Replicas:
    """Return the bounds of a workload's scaler, or else its own number of replicas, 1 by default.

    KEDA's defaults are 0 and 100 replicas (v2.20.2 `apis/keda/v1alpha1/scaledobject_types.go`), an autoscaler's minimum
    is 1 (`autoscaling/v2`).
    """
    scalers = tuple(_scalers(target, ctx))
    if scalers:
        return Replicas(min(least for least, _ in scalers), max(most for _, most in scalers), certain=True)
    own = _number(workload["spec", "replicas"], 1)
    facts = (ctx.facts.list(need.kind, ctx.request.namespace) for need in SCALER_NEEDS)
    return Replicas(own, own, all(isinstance(fact, Known) and fact.complete for fact in facts))


def _scalers(target: ScaleTarget, ctx: AnyContext) -> Iterator[_Bounds]:
    for need in SCALER_NEEDS:
        fact = ctx.facts.list(need.kind, ctx.request.namespace)
        bounds = _of_keda if need.kind is SCALED_OBJECT else _of_autoscalers
        target_bounds = (
            derived(fact, bounds, ctx, ctx.request.namespace).get(target) if isinstance(fact, Known) else None
        )
        if target_bounds:
            yield target_bounds


def _of_keda(known: Known, ctx: AnyContext) -> dict[ScaleTarget, _Bounds]:
    return {target: _widest(map(_bounds_of_keda, scalers)) for target, scalers in by_target(known, ctx).items()}


def _of_autoscalers(known: Known, ctx: AnyContext) -> dict[ScaleTarget, _Bounds]:
    return {target: _widest(map(_bounds, scalers)) for target, scalers in by_target(known, ctx).items()}


def _widest(bounds: Iterator[_Bounds]) -> _Bounds:
    least, most = zip(*bounds, strict=True)
    return min(least), max(most)


def _bounds(autoscaler: Field) -> _Bounds:
    spec = autoscaler["spec"]
    return _number(spec["minReplicas"], 1), _number(spec["maxReplicas"], 1)


def _bounds_of_keda(scaled_object: Field) -> _Bounds:
    spec = scaled_object["spec"]
    least = _number(spec["minReplicaCount"], 0)
    return min(_number(spec["idleReplicaCount"], least), least), _number(spec["maxReplicaCount"], _KEDA_MAXIMUM)


def _number(field: Field, default: int) -> int:
    return default if field.integer is None else field.integer
