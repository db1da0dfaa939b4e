"""Query for a metric that does not exist, or for the rate of a gauge.

## Why is this bad?
The workload stays at its minimum while requests wait: KEDA counts a query without a result as 0, and reports nothing.
vLLM's metrics have a colon: `vllm:num_requests_running`. `rate()` is for counters: it returns how fast they grow. A
gauge, such as the number of running requests, does not grow under a steady load, so its `rate()` is about 0.

## Instead
Write the exported name of the metric. Query a gauge itself, or its average over a time:

```yaml
query: sum(avg_over_time(vllm:num_requests_running[1m]))
```

The policy knows the names of vLLM's metrics, and the gauges of vLLM, Triton and DCGM. If a recording rule of yours
has a name that looks like a misspelt metric of vLLM, such as `vllm_num_requests_running`, the policy reports it too.
Rename such a rule.

## Sources
vLLM `vllm/v1/metrics/loggers.py`; dcgm-exporter `etc/dcp-metrics-included.csv` (types); Prometheus v3.5
`docs/querying/functions.md` (rate, irate and increase are for counters); KEDA v2.20.2
`pkg/scalers/prometheus_scaler.go` (ignoreNullValues).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling import _queries
from gpugate.policies.scaling._scaled_objects import highest_stance, queries
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.objects import SCALED_OBJECT
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import TARGET_NEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.promql import Selector

_FOR_COUNTERS: Final = frozenset({"increase", "irate", "rate"})


@validates(SCALED_OBJECT, mode=Stance.WARN, needs=TARGET_NEEDS)
def check(_: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report each misnamed metric of a query, and each rate of a gauge."""
    at_most = ctx.derived(highest_stance)
    for trigger, read in ctx.derived(queries) if at_most else ():
        query, selectors = trigger["metadata", "query"], read.selectors
        wrong = [s for s in selectors if _queries.right_name(s.metric) != s.metric]
        rates = [s for s in selectors if _queries.is_gauge(s.metric) and s.call and s.call.name in _FOR_COUNTERS]
        if not wrong and not rates:
            continue
        fix = Patches((Patch("set", query.path, _corrected(query.text, wrong, rates), "queries the exported metric"),))
        for name in dict.fromkeys(s.metric for s in wrong):
            right = _queries.right_name(name)
            message = f"vLLM exports {right}, with a colon, not {name}"
            why = (
                "A query without a result counts as 0, so the workload stays at its minimum however many requests wait."
            )
            yield Violation(query.path, message, at_most, f"write {right}", fix, why=why)
        for call, name in dict.fromkeys((s.call.name, _queries.right_name(s.metric)) for s in rates if s.call):
            message = f"{call}() is for counters, but {name} is a gauge"
            why = "The rate of a gauge is about 0 under a steady load, so the workload stays at its minimum."
            yield Violation(
                query.path,
                message,
                at_most,
                f"write avg_over_time() instead, or {name} without a function",
                fix,
                why=why,
            )


def _corrected(query: str, wrong: list[Selector], rates: list[Selector]) -> str:
    changes = {s.start: (s.metric, _queries.right_name(s.metric)) for s in wrong if query.startswith(s.metric, s.start)}
    changes |= {s.call.start: (s.call.name, "avg_over_time") for s in rates if s.call}
    for start, (old, new) in sorted(changes.items(), reverse=True):
        query = query[:start] + new + query[start + len(old) :]
    return query
