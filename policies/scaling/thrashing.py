"""GPU workload that is scaled down as soon as its load falls.

## Why is this bad?
When the load drops for a short time, GPU Pods are removed. New Pods serve requests only minutes later, when a node, its
driver, the image and the model are ready. Requests wait until then. While nodes start up and shut down, their GPUs cost
money but do no work.

## Instead
Wait before scaling down. 300 s is the default of Kubernetes and KEDA, so it is enough to delete the setting:

```yaml
spec:
  cooldownPeriod: 300    # before scaling to zero
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleDown:
          stabilizationWindowSeconds: 300
```

The policy reports two settings:

- `scaleDown.stabilizationWindowSeconds` below `min_stabilization`.
- `cooldownPeriod` below `min_cooldown`, if the workload scales to zero or to `idleReplicaCount`, and at least one of its triggers
  is not `cron`.

A ScaledObject is reported if its workload requests GPUs. If gpugate does not find the workload, it reports the ScaledObject only if a
query reads metrics of model servers or GPUs. It also reports it if it knows all workloads of the namespace and this one does not
exist, because a workload that is created later may request GPUs. A HorizontalPodAutoscaler is reported only if its workload is known
to request GPUs.

A short window is not reported in these cases:

- The autoscaler never scales down (`selectPolicy: Disabled`), or minimum and maximum are the same.
- Every entry of `scaleDown.policies` has a `periodSeconds` of at least `min_stabilization`, and allows the removal of only some
  of the Pods in one period.
- Every trigger is a Prometheus query over time, such as `avg_over_time`.

## Sources
Kubernetes v1.36 "Horizontal Pod Autoscaling", sections "Stabilization window" and "Default behavior",
`k8s.io/api/autoscaling/v2` HPAScalingRules (300 s by default); KEDA v2.20.2
`pkg/scaling/executor/scale_scaledobjects.go` (defaultCooldownPeriod 300, scaleToZeroOrIdle); kaito-project/kaito pull
request 2325 (966 s from request to a ready server).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from gpugate.policies.scaling._scaled_objects import (
    MAKER_NEEDS,
    highest_stance,
    is_made_by_keda,
    maximum,
    minimum,
    queries,
    target_doubt,
)
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.objects import HORIZONTAL_POD_AUTOSCALER, SCALED_OBJECT
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.scale_targets import TARGET_NEEDS, most_for, scale_target, target_demand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.findings import Skip

_Seconds = Annotated[int, msgspec.Meta(ge=0, le=3600)]


class Params(PolicyParams, frozen=True, kw_only=True):
    """How long to wait before scaling down.

    Attributes:
        min_stabilization: the shortest stabilization window for scaling down, in seconds.
        min_cooldown: the shortest cool-down before scaling to zero, in seconds.
    """

    min_stabilization: _Seconds = 60
    min_cooldown: _Seconds = 300


@validates(SCALED_OBJECT, params=Params, mode=Stance.WARN, needs=TARGET_NEEDS)
def check_scaled_object(scaled_object: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report a short window for scaling down, and a short cool-down before scaling to zero."""
    at_most = ctx.derived(highest_stance)
    findings = tuple(_hasty(scaled_object, at_most, ctx)) if at_most else ()
    doubt = target_doubt(scaled_object, ctx) if findings else None
    yield from (doubt,) if doubt else findings


def _hasty(scaled_object: Field, at_most: Stance, ctx: Context[Params]) -> Iterator[Violation]:
    spec = scaled_object["spec"]
    if minimum(scaled_object) < maximum(scaled_object) and not _reads_averages(scaled_object, ctx):
        behavior = spec["advanced", "horizontalPodAutoscalerConfig", "behavior"]
        yield from _short_window(behavior["scaleDown"], at_most, ctx)
    cooldown, to = spec["cooldownPeriod"], "zero" if not spec["idleReplicaCount"].integer else "idleReplicaCount"
    seconds = cooldown.integer
    scales_off = minimum(scaled_object) == 0 or bool(spec["idleReplicaCount"])
    # The load of a cron trigger ends on schedule: it does not return within the cool-down.
    scales_off = scales_off and any(trigger["type"].text != "cron" for trigger in spec["triggers"])
    if scales_off and seconds is not None and 0 <= seconds < ctx.params.min_cooldown:
        message = f"scales to {to} after {seconds} s without load (minimum: {ctx.params.min_cooldown} s)"
        hint = f"write cooldownPeriod: {ctx.params.min_cooldown} or more"
        yield Violation(cooldown.path, message, at_most, hint, _fix(cooldown, ctx.params.min_cooldown))


@validates(HORIZONTAL_POD_AUTOSCALER, params=Params, mode=Stance.WARN, needs=(*TARGET_NEEDS, *MAKER_NEEDS))
def check_autoscaler(autoscaler: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report a short window for scaling down, unless KEDA made the autoscaler."""
    spec, target = autoscaler["spec"], scale_target(autoscaler)
    if is_made_by_keda(autoscaler, ctx):
        return
    least = spec["minReplicas"].integer
    if (1 if least is None else least) >= (spec["maxReplicas"].integer or 0):
        return
    demand = target_demand(target, ctx) if target else None
    if demand:
        yield from _short_window(spec["behavior", "scaleDown"], most_for(demand), ctx)


def _reads_averages(scaled_object: Field, ctx: Context[Params]) -> bool:
    """Tell whether every trigger is a query over time, so that the metric does not drop immediately."""
    if any(trigger["type"].text != "prometheus" for trigger in scaled_object["spec", "triggers"]):
        return False
    return all(any(call.name.endswith("_over_time") for call in query.calls) for _, query in ctx.derived(queries))


def _short_window(down: Field, at_most: Stance, ctx: Context[Params]) -> Iterator[Violation]:
    window, least = down["stabilizationWindowSeconds"], ctx.params.min_stabilization
    seconds = window.integer
    if seconds is None or not 0 <= seconds < least or down["selectPolicy"].text == "Disabled":
        return
    policies = tuple(down["policies"])
    if policies and all(_is_slow(policy, least) for policy in policies):
        return
    message = f"scales down {seconds} s after the load falls (minimum: {least} s)"
    hint = f"write stabilizationWindowSeconds: {max(least, 300)}, the default, or at least {least}"
    yield Violation(window.path, message, at_most, hint, _fix(window, max(least, 300)))


def _is_slow(policy: Field, least: int) -> bool:
    """Tell whether a policy removes only a part of the Pods in a period of at least `least` seconds."""
    part = policy["type"].text == "Pods" or (policy["value"].integer or 0) < 100
    return part and (policy["periodSeconds"].integer or 0) >= least


def _fix(field: Field, seconds: int) -> Patches:
    return Patches((Patch("set", field.path, seconds, "keeps GPU Pods during short pauses of the load"),))
