"""Query for an average, which the HPA then divides by the number of replicas again.

## Why is this bad?
The workload does not scale out beyond a few replicas, however busy they are, because an average does not grow with
the number of replicas. A trigger without `metricType` is an `AverageValue`: the autoscaler treats the query result as
a total, and starts one replica for each `threshold` in it. An average of 100 % with a threshold of 70 gives at most
two replicas.

## Instead
Write `metricType: Value`, which compares the average itself with the threshold, or query a total:

```yaml
triggers:
  - type: prometheus
    metricType: Value
    metadata:
      serverAddress: http://prometheus.monitoring:9090
      query: avg(DCGM_FI_DEV_GPU_UTIL{pod=~"llm-.*"})
      threshold: "70"
```

The policy reports an average, a maximum or a quantile of a metric with a fixed greatest value, such as 100 for a
percentage, if that value gives fewer replicas than `maxReplicaCount`. ScaledObjects with `scalingModifiers` are not
reported, because the thresholds of their triggers do not count.

## Sources
KEDA v2.20.2 `pkg/scalers/scaler.go` (GetMetricTargetType: AverageValue where nothing is said), `prometheus_scaler.go`;
`k8s.io/kubernetes/pkg/controller/podautoscaler/replica_calculator.go` v1.36 (GetExternalPerPodMetricReplicas:
ceil(usage / target)); dcgm-exporter `etc/dcp-metrics-included.csv` (units).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.scaling._queries import most, number
from gpugate.policies.scaling._scaled_objects import has_formula, highest_stance, maximum, most_replicas, queries
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.objects import SCALED_OBJECT
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import TARGET_NEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext


@validates(SCALED_OBJECT, mode=Stance.WARN, needs=TARGET_NEEDS)
def check(scaled_object: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Compare the replicas for the largest result with the maximum."""
    at_most = ctx.derived(highest_stance)
    if not at_most or has_formula(scaled_object):
        return
    allowed = maximum(scaled_object)
    for trigger, query in ctx.derived(queries):
        replicas = most_replicas(trigger, query)
        bound, threshold = most(query), number(trigger["metadata", "threshold"].text)
        if replicas is not None and bound is not None and threshold is not None and replicas < allowed:
            kind = trigger["metricType"]
            bounds = (
                f"the query returns at most {float(bound):g}, and the threshold is {float(threshold):g} per replica"
            )
            message = f"{bounds}, so KEDA never requests more than {replicas} replicas (maxReplicaCount: {allowed})"

            hint = "write metricType: Value, or change the query to a total"
            yield Violation(kind.path, message, at_most, hint, _fix(scaled_object, kind, ctx))


def _fix(scaled_object: Field, kind: Field, ctx: AnyContext) -> Patches | None:
    # Before 2.18 KEDA rejects it with a fallback (CHANGELOG.md, #6655).
    if scaled_object["spec", "fallback"] and not at_least(ctx.target.keda, "2.18"):
        return None
    reason = "sets metricType: Value, because the query is an average already"
    return Patches((Patch("set", kind.path, "Value", reason),))
