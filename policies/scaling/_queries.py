"""Prometheus queries of scalers: metrics, bounds, and whether a query has a result without running Pods.

Sources of metrics, as of 2026-11-21: vLLM `vllm/v1/metrics/loggers.py` (names, types; "1 means 100 percent usage");
dcgm-exporter `etc/dcp-metrics-included.csv` (types and units); Triton Inference Server metrics guide (GPU utilization 0.0 to
1.0). The metrics of vLLM's router (`vllm:num_incoming_requests_total` and others; vLLM production-stack
`src/vllm_router/services/metrics_service`) exist without a serving Pod and are none of these.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.promql import Call, Matcher, Query, Selector

# Numbers of JSON, as KEDA parses them (v2.20.2 `pkg/scalers/scalersconfig/typed_config.go`), with a limited length.
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?")


def number(text: str) -> Fraction | None:
    """Return a number such as `70`, `0.5` or `1e3`; None for other texts, such as `70%`, `.5` or `5m`."""
    text = text.strip()
    return Fraction(text) if _NUMBER.fullmatch(text) else None


_VLLM_RATIOS: Final = ("gpu_cache_usage_perc", "kv_cache_usage_perc", "cpu_cache_usage_perc")
_VLLM_GAUGES: Final = (*_VLLM_RATIOS, "num_requests_running", "num_requests_waiting", "num_requests_swapped")
_VLLM_COUNTERS: Final = (
    "generation_tokens_total",
    "num_preemptions_total",
    "prefix_cache_hits_total",
    "prefix_cache_queries_total",
    "prompt_tokens_total",
    "request_success_total",
)
_VLLM_HISTOGRAMS: Final = (
    "e2e_request_latency_seconds",
    "inter_token_latency_seconds",
    "iteration_tokens_total",
    "request_decode_time_seconds",
    "request_generation_tokens",
    "request_inference_time_seconds",
    "request_prefill_time_seconds",
    "request_prompt_tokens",
    "request_queue_time_seconds",
    "time_per_output_token_seconds",
    "time_to_first_token_seconds",
)
VLLM: Final = frozenset(
    (
        *_VLLM_GAUGES,
        *_VLLM_COUNTERS,
        *(f"{name}_{part}" for name in _VLLM_HISTOGRAMS for part in ("bucket", "count", "sum")),
    )
)
# The maximum of each bounded metric.
BOUNDS: Final[Mapping[str, int]] = {
    **dict.fromkeys((f"DCGM_FI_DEV_{unit}_UTIL" for unit in ("GPU", "MEM_COPY", "ENC", "DEC")), 100),
    **dict.fromkeys(
        (
            f"DCGM_FI_PROF_{part}"
            for part in (
                "DRAM_ACTIVE",
                "GR_ENGINE_ACTIVE",
                "PIPE_FP16_ACTIVE",
                "PIPE_FP32_ACTIVE",
                "PIPE_FP64_ACTIVE",
                "PIPE_TENSOR_ACTIVE",
                "SM_ACTIVE",
                "SM_OCCUPANCY",
            )
        ),
        1,
    ),
    **dict.fromkeys((f"vllm:{name}" for name in _VLLM_RATIOS), 1),
    "nv_gpu_utilization": 1,
}
_DCGM_GAUGES: Final = (
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_RESERVED",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_MEMORY_TEMP",
    "DCGM_FI_DEV_MEM_CLOCK",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_SM_CLOCK",
)
_GAUGES: Final = frozenset((*BOUNDS, *_DCGM_GAUGES, *(f"vllm:{name}" for name in _VLLM_GAUGES)))


def right_name(metric: str) -> str:
    """Return vLLM's name of a metric that is written without its colon, else the name itself."""
    base = metric.removeprefix("vllm_")
    return f"vllm:{base}" if base != metric and base in VLLM else metric


def is_gauge(metric: str) -> bool:
    """Tell whether a metric is a gauge, so its rate is meaningless."""
    return right_name(metric) in _GAUGES


def is_of_servers(metric: str) -> bool:
    """Tell whether only model servers export a metric."""
    return right_name(metric).removeprefix("vllm:") in VLLM or metric.startswith("nv_inference_")


def is_of_pods(metric: str) -> bool:
    """Tell whether a metric describes running Pods of any workload."""
    return metric.startswith(("DCGM_FI_", "container_", "kube_pod_"))


# Functions whose result never exceeds their largest input.
_AVERAGES: Final = frozenset(
    {
        "avg",
        "avg_over_time",
        "last_over_time",
        "max",
        "max_over_time",
        "min",
        "min_over_time",
        "quantile",
        "quantile_over_time",
    }
)


def most(query: Query) -> Fraction | None:
    """Return the maximum of averages of one bounded metric, multiplied or divided by a number; None for other queries."""
    if len(query.selectors) != 1 or any(call.name not in _AVERAGES and not is_zero(call) for call in query.calls):
        return None
    bound = BOUNDS.get(query.selectors[0].metric)
    factor = _factor(query)
    return None if bound is None or factor is None else bound * factor


def is_zero(call: Call) -> bool:
    """Tell whether a call is `vector(0)`, which after `or` gives 0 if there is no result."""
    return call.name == "vector" and number(call.number) == 0


def _factor(query: Query) -> Fraction | None:
    filled = any(is_zero(call) for call in query.calls)
    operators = [operation for operation in query.operators if not (filled and operation[0] == "or")]
    if not operators:
        return Fraction(1)
    (operator, left, right), *more = operators
    behind = number(right.text)
    if more or operator not in {"*", "/"}:
        return None
    if operator == "/":
        return 1 / behind if behind else None
    return number(left.text) if behind is None else behind


# Functions with a result without any series (Prometheus v3.5 `promql/functions.go`).
_FROM_NOTHING: Final = frozenset(
    {
        "absent",
        "absent_over_time",
        "day_of_month",
        "day_of_week",
        "day_of_year",
        "days_in_month",
        "hour",
        "minute",
        "month",
        "pi",
        "time",
        "vector",
        "year",
    }
)
# Without honorLabels, a scrape renames the exporter's labels for the Pod and its namespace.
_POD_LABELS: Final = frozenset({"exported_pod", "pod", "pod_name"})
_NAMESPACE_LABELS: Final = frozenset({"exported_namespace", "namespace"})
_REGEX_SIGNS: Final = frozenset(".^$*+?()[]{}|\\")


def has_result_without_series(query: Query) -> bool:
    """Tell whether a query may have a result without any selected series, as with `or vector(0)`."""
    return any(call.name in _FROM_NOTHING for call in query.calls)


# Aggregations of Prometheus v3.5 `promql/parser/lex.go`. With `by` or `without` they may have several results.
_AGGREGATIONS: Final = frozenset(
    {
        "avg",
        "bottomk",
        "count",
        "count_values",
        "group",
        "limit_ratio",
        "limitk",
        "max",
        "min",
        "quantile",
        "stddev",
        "stdvar",
        "sum",
        "topk",
    }
)


def series_of_each_pod(query: Query) -> Selector | None:
    """Return the first selector without an aggregation, so that the result has a series for each Pod.

    None if this is not certain: for metrics that are not known to be exported by each Pod, and for a selector that
    names one Pod.
    """
    calls = {call.name for call in query.calls}
    if calls & (_AGGREGATIONS | _FROM_NOTHING | {"scalar"}) or not query.selectors:
        return None
    if all(_of_many_pods(selector) for selector in query.selectors):
        return query.selectors[0]
    return None


def _of_many_pods(selector: Selector) -> bool:
    name = selector.metric
    if any(m.label in _POD_LABELS | {"instance"} and m.operator == "=" for m in selector.matchers):
        return False
    return is_of_servers(name) or name.startswith("DCGM_FI_")


def only_of_own_pods(query: Query, workload: str, namespace: str) -> bool:
    """Tell whether a query selects only series of Pods of a workload, and has no result without them."""
    if any(call.name in _FROM_NOTHING and not is_zero(call) for call in query.calls):
        return False
    return bool(query.selectors) and all(_own(selector, workload, namespace) for selector in query.selectors)


def _own(selector: Selector, workload: str, namespace: str) -> bool:
    pods = [m for m in selector.matchers if m.label in _POD_LABELS and m.operator in {"=", "=~"}]
    for matcher in selector.matchers:
        elsewhere = matcher.label in _NAMESPACE_LABELS and matcher.operator == "=" and matcher.value != namespace
        if elsewhere and namespace:
            return False
    if not pods:
        return is_of_servers(selector.metric)
    if is_of_servers(selector.metric) or is_of_pods(selector.metric):
        return any(_may_name(matcher, workload) for matcher in pods)
    return any(_start(matcher) in {workload, f"{workload}-"} for matcher in pods)


def _may_name(matcher: Matcher, workload: str) -> bool:
    """Tell whether a condition on the Pod's name holds for Pods of a workload, whose names begin with its name."""
    start, name = _start(matcher), f"{workload}-"
    return bool(start) and (name.startswith(start) or (matcher.operator == "=" and start.startswith(name)))


def _start(matcher: Matcher) -> str:
    """Return the common prefix of all matching names; the whole name for `=`."""
    if matcher.operator == "=":
        return matcher.value
    end = next((index for index, sign in enumerate(matcher.value) if sign in _REGEX_SIGNS), len(matcher.value))
    # A repeated or optional part may be missing, and an alternative may begin differently.
    if "|" in matcher.value:
        return ""
    return matcher.value[: end - 1] if matcher.value[end : end + 1] in {"*", "?", "{"} else matcher.value[:end]
