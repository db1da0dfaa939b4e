"""Autoscaling of a GPU workload without a configured maximum.

## Why is this bad?
One wrong metric scales a workload to its maximum, and Karpenter launches the GPU nodes for it, up to the limits of
its node pools. KEDA's default is 100 replicas for a ScaledObject or a ScaledJob: with eight GPUs per Pod that is 800
GPUs.

## Instead
Write the maximum, low enough that reaching it by mistake is affordable:

```yaml
spec:
  maxReplicaCount: 8
```

A ScaledObject may have at most `max_replicas` replicas. The same maximum applies to the annotation
`autoscaling.keda.sh/paused-replicas`, which keeps that number of replicas, even above `maxReplicaCount`. A ScaledJob
or a HorizontalPodAutoscaler may reach at most `max_gpus` GPUs. A MIG slice or a Neuron core counts as its part of a
device.

The object is denied if the workload requests GPUs. A ScaledObject gets a warning if gpugate does not find its
workload. Nothing is reported if the workload requests no GPU.

gpugate can add defaults to new ScaledObjects of GPU workloads: `default_max` adds a missing maximum,
`default_fallback` a missing fallback, and `default_stabilization` slower scaling down.

## Sources
KEDA v2.20.2 `apis/keda/v1alpha1/scaledobject_types.go` (defaultHPAMaxReplicas), `scaledjob_types.go`
(defaultScaledJobMaxReplicaCount), `scaledobject_webhook.go` (no check of the maximum),
`controllers/keda/scaledobject_controller.go` (paused replicas).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.scaling import _scaled_objects
from gpugate.policies.scaling._scaled_objects import paused_at
from gpugate.policies.sdk.findings import Patch, Skip, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, GpuDemand
from gpugate.policies.sdk.objects import HORIZONTAL_POD_AUTOSCALER, SCALED_JOB, SCALED_OBJECT
from gpugate.policies.sdk.policy import Context, mutates, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.scale_targets import (
    TARGET_NEEDS,
    most_for,
    scale_target,
    target_demand,
    whole_gpus,
    workload_demand,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_KEDA_MAXIMUM: Final = 100
_Count = Annotated[int, msgspec.Meta(ge=1)]


class Params(PolicyParams, frozen=True, kw_only=True):
    """How far autoscaling may go, and the defaults that are added.

    Attributes:
        max_replicas: the most replicas a ScaledObject may ask for.
        max_gpus: the most GPUs a ScaledJob or a HorizontalPodAutoscaler may reach.
        default_max: the maximum that a ScaledObject of a GPU workload gets on creation when it has none; off when null.
        default_fallback: give it a fallback of its minimum, at least one replica, when it has none.
        default_stabilization: seconds to wait before scaling down, for a ScaledObject without a behavior; off when null.
    """

    max_replicas: _Count = 20
    max_gpus: _Count = 64
    default_max: _Count | None = None
    default_fallback: bool = False
    default_stabilization: Annotated[int, msgspec.Meta(ge=0, le=3600)] | None = None

    def __post_init__(self) -> None:
        if self.default_max is not None and self.default_max > self.max_replicas:
            raise ValueError(f"default_max {self.default_max} is above max_replicas {self.max_replicas}")


@mutates(SCALED_OBJECT, params=Params, needs=TARGET_NEEDS)
def bound(scaled_object: Field, ctx: Context[Params]) -> Iterator[Patch]:
    """Add the defaults that the platform enables, if the target requests GPUs."""
    params = ctx.params
    if not (params.default_max or params.default_fallback or params.default_stabilization is not None):
        return
    if not _demand(scaled_object, ctx):
        return
    if params.default_max:
        yield from _scaled_objects.set_maximum(scaled_object, params.default_max)
    if params.default_fallback:
        yield from _scaled_objects.set_fallback(scaled_object)
    if params.default_stabilization is not None:
        yield from _scaled_objects.set_stabilization(scaled_object, params.default_stabilization)


@validates(SCALED_OBJECT, params=Params, needs=TARGET_NEEDS)
def check_scaled_object(scaled_object: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Compare the maximum and the paused number of replicas with the bound."""
    maximum, bound = scaled_object["spec", "maxReplicaCount"], ctx.params.max_replicas
    replicas = _KEDA_MAXIMUM if not maximum else maximum.integer or 0
    paused = paused_at(scaled_object)
    is_within = bool(maximum) and replicas <= bound
    if is_within and (paused is None or paused[1] <= bound):
        return
    demand = _demand(scaled_object, ctx)
    at_most = most_for(demand)
    if not at_most:
        return
    unknown = f"; {_unknown_target(scaled_object)}" if demand is None else ""
    if not is_within:
        setting = (
            f"maxReplicaCount is {replicas}"
            if maximum
            else f"missing maxReplicaCount, so KEDA's default of {_KEDA_MAXIMUM} applies"
        )
        message = f"{setting}{_gpus(replicas, demand)} (maximum: {bound} replicas){unknown}"
        yield Violation(maximum.path, message, at_most, f"write maxReplicaCount: {bound} or less")
    if paused is not None and paused[1] > bound:
        annotation, number = paused
        message = f"paused at {number} replicas{_gpus(number, demand)} (maximum: {bound} replicas){unknown}"
        yield Violation(annotation.path, message, at_most, f"write {bound} or less, or remove the annotation")


@validates(SCALED_JOB, params=Params, needs=CLAIM_NEEDS)
def check_scaled_job(scaled_job: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Compare the GPUs of all its Jobs, each with all its Pods, with the bound."""
    demand = workload_demand(SCALED_JOB, scaled_job, ctx)
    if not demand and demand.doubt:
        yield demand.doubt
        return
    maximum = scaled_job["spec", "maxReplicaCount"]
    jobs = _KEDA_MAXIMUM if not maximum else maximum.integer or 0
    pods = jobs * (scaled_job["spec", "jobTargetRef", "parallelism"].integer or 1)
    if whole_gpus(demand) * pods > ctx.params.max_gpus:
        absent = "" if maximum else f"missing maxReplicaCount, so KEDA's default of {_KEDA_MAXIMUM} applies: "
        message = f"{absent}{_product(pods, demand)} (maximum: {ctx.params.max_gpus})"
        yield Violation(maximum.path, message, hint="lower maxReplicaCount" if maximum else "add maxReplicaCount")


@validates(HORIZONTAL_POD_AUTOSCALER, params=Params, needs=TARGET_NEEDS)
def check_autoscaler(autoscaler: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Compare the GPUs of all replicas with the bound."""
    maximum = autoscaler["spec", "maxReplicas"]
    demand = _demand(autoscaler, ctx)
    if demand is None:
        yield Skip(f"the Pod template of {scale_target(autoscaler)} is unknown")
    elif not demand and demand.doubt:
        yield demand.doubt
    elif whole_gpus(demand) * (maximum.integer or 0) > ctx.params.max_gpus:
        message = f"{_product(maximum.integer or 0, demand)} (maximum: {ctx.params.max_gpus})"
        yield Violation(maximum.path, message, hint="lower maxReplicas")


def _demand(scaler: Field, ctx: Context[Params]) -> GpuDemand | None:
    target = scale_target(scaler)
    return target_demand(target, ctx) if target else None


def _unknown_target(scaler: Field) -> str:
    target = scale_target(scaler)
    return f"it is not known whether {target or 'its target'} requests GPUs"


def _gpus(replicas: int, demand: GpuDemand | None) -> str:
    return f": {_product(replicas, demand)}" if demand else ""


def _product(replicas: int, demand: GpuDemand) -> str:
    """Return the product as text: `100 x 8 GPUs = 800 GPUs`."""
    gpus = whole_gpus(demand)
    return f"{replicas} x {gpus} GPUs = {math.ceil(gpus * replicas)} GPUs"
