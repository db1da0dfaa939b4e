"""Scaling to zero on metrics that only the scaled Pods export.

## Why is this bad?
The workload stays at zero: without a Pod the metric does not exist, and KEDA treats the missing result as 0. Requests
wait indefinitely or are lost.

## Instead
Measure the demand before it reaches the Pods: requests at the gateway or router, messages in a queue, the KEDA HTTP
add-on. Or keep one replica with `minReplicaCount: 1`.

```yaml
triggers:
  - type: prometheus
    metadata:
      serverAddress: http://prometheus.monitoring:9090
      query: sum(rate(vllm:num_incoming_requests_total{model="llama-3"}[1m]))   # of the router, not of the Pods
      threshold: "1"
```

A ScaledObject is reported if every trigger is one of these:

- A Prometheus query for metrics of the workload's own Pods: those of vLLM and Triton, and those of DCGM, containers
  and Pods if the query names the workload's Pods.
- A trigger of type cpu or memory, which starts nothing from zero.

It is not reported if one of these can start the workload:

- A trigger of another type.
- A query that gives a result without Pods (`absent`, `vector(1)`).
- A negative `activationThreshold`, or the annotation `autoscaling.keda.sh/force-activation`.
- A formula that combines the triggers.
- A fallback that applies because `ignoreNullValues` is "false".

## Sources
KEDA v2.20.2 `pkg/scalers/prometheus_scaler.go` (an empty result is 0, active is above activationThreshold),
`pkg/scaling/scale_handler.go` (cpu and memory beside others, active while falling back),
`pkg/scaling/executor/scale_scaledobjects.go`; vLLM `vllm/v1/metrics/loggers.py`; vLLM production-stack
`src/vllm_router/services/metrics_service`; dcgm-exporter `etc/dcp-metrics-included.csv`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling import _queries
from gpugate.policies.scaling._queries import number, only_of_own_pods
from gpugate.policies.scaling._scaled_objects import floor, has_formula, highest_stance, is_false, queries
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.objects import SCALED_OBJECT
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import TARGET_NEEDS, scale_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_FORCED: Final = "autoscaling.keda.sh/force-activation"
_NEVER_FROM_ZERO: Final = frozenset({"cpu", "memory"})


@validates(SCALED_OBJECT, mode=Stance.WARN, needs=TARGET_NEEDS)
def check(scaled_object: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report ScaledObjects that may scale to zero and have no trigger that could scale them up again."""
    lowest = floor(scaled_object)
    target = scale_target(scaled_object)
    if target is None or lowest.integer or has_formula(scaled_object) or _forced(scaled_object):
        return
    others = [t for t in scaled_object["spec", "triggers"] if t["type"].text not in _NEVER_FROM_ZERO]
    asks = ctx.derived(queries)
    if not asks or len(asks) < len(others):
        return
    namespace = ctx.request.namespace
    if any(_starts_anyway(trigger, scaled_object) for trigger, _ in asks) or not all(
        only_of_own_pods(query, target.name, namespace) for _, query in asks
    ):
        return
    at_most = ctx.derived(highest_stance)
    if at_most:
        metric = _queries.right_name(asks[0][1].selectors[0].metric) or "its metric"
        name = "idleReplicaCount" if lowest.path[-1] == "idleReplicaCount" else "minReplicaCount"
        message = f"{name} is 0, but {metric} exists only while a Pod of {target} runs"
        hint = "use a metric of the gateway or queue, or write minReplicaCount: 1"
        yield Violation(lowest.path, message, at_most, hint, _fix(lowest))


def _forced(scaled_object: Field) -> bool:
    forced = scaled_object["metadata", "annotations", _FORCED]
    return bool(forced) and not is_false(forced.text)


def _starts_anyway(ask: Field, scaled_object: Field) -> bool:
    """Tell whether a trigger is active without a result of its query, because 0 is above a threshold or an error."""
    metadata = ask["metadata"]
    activation = number(metadata["activationThreshold"].text)
    if is_false(metadata["ignoreNullValues"].text.strip()):
        return bool(scaled_object["spec", "fallback"])
    return activation is not None and activation < 0


def _fix(lowest: Field) -> Patches:
    if lowest.path[-1] == "idleReplicaCount":
        return Patches((Patch("remove", lowest.path, None, "keeps the minimum when no trigger is active"),))
    return Patches((Patch("set", lowest.path, 1, "keeps one replica, whose metrics show when more are needed"),))
