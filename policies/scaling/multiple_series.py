"""Prometheus query with a series for each Pod, which KEDA refuses as soon as there are two.

## Why is this bad?
Scaling stops when the second replica starts: the query then has two results, KEDA reports an error, and the number of
replicas no longer follows the load. If the ScaledObject has a `fallback`, KEDA then uses the number of replicas in it.

## Instead
Aggregate the query to one number. If the threshold is per replica, use the total:

```yaml
triggers:
  - type: prometheus
    metadata:
      serverAddress: http://prometheus.monitoring:9090
      query: sum(vllm:num_requests_waiting{namespace="serving"})
      threshold: "5"
```

A query is reported if it selects metrics of vLLM, Triton or DCGM without an aggregation, because each Pod or GPU
exports its own series. It is not reported if it names one Pod, or if the workload never has a second replica. Metrics
of other exporters are not reported, because gpugate does not know their number of series.

## Sources
KEDA v2.20.2 `pkg/scalers/prometheus_scaler.go` (ExecutePromQuery: "returned multiple elements"), the same in v2.21.0;
Prometheus v3.5 `promql/parser/lex.go` (aggregations); vLLM `vllm/v1/metrics/loggers.py`; dcgm-exporter
`etc/dcp-metrics-included.csv`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.scaling._queries import BOUNDS, right_name, series_of_each_pod
from gpugate.policies.scaling._scaled_objects import highest_stance, maximum, queries
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.objects import SCALED_OBJECT
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import TARGET_NEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext


@validates(SCALED_OBJECT, mode=Stance.WARN, needs=TARGET_NEEDS)
def check(scaled_object: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report each query whose result has a series for each Pod."""
    at_most = ctx.derived(highest_stance)
    if not at_most or maximum(scaled_object) <= 1:
        return
    for trigger, query in ctx.derived(queries):
        selector = series_of_each_pod(query)
        if selector is None:
            continue
        metric = right_name(selector.metric)
        exporter = "GPU" if metric.startswith("DCGM_FI_") else "Pod"
        message = f"the query returns a series of {metric} for each {exporter}, but KEDA accepts only one"
        aggregated = f"avg({metric}) and metricType: Value" if metric in BOUNDS else f"sum({metric})"
        hint = f"aggregate it, such as {aggregated}"
        # A query for another metric replaces this one.
        same_as = ("scaling/saturating-signal",)
        yield Violation(trigger["metadata", "query"].path, message, at_most, hint, same_as=same_as)
