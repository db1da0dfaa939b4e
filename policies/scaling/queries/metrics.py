"""Metrics of GPUs and inference servers: which are gauges, which are bounded, which the serving Pods export themselves.

Sources, as of 2026-11-21: vLLM `vllm/v1/metrics/loggers.py` (names, types; "1 means 100 percent usage"); dcgm-exporter
`etc/dcp-metrics-included.csv` (types and units); Triton Inference Server metrics guide (GPU utilization 0.0 to 1.0).
What vLLM's router exports (`vllm:num_incoming_requests_total` and others; vLLM production-stack
`src/vllm_router/services/metrics_service`) is there without a serving Pod, and is none of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

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
# The most that a metric can be.
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
    """Return the name under which vLLM exports a metric that is written without its colon; else the name itself."""
    base = metric.removeprefix("vllm_")
    return f"vllm:{base}" if base != metric and base in VLLM else metric


def is_gauge(metric: str) -> bool:
    """Tell whether a metric goes up and down, so that its rate means nothing."""
    return right_name(metric) in _GAUGES


def is_of_servers(metric: str) -> bool:
    """Tell whether the processes that serve a model export a metric, and nothing else does."""
    return right_name(metric).removeprefix("vllm:") in VLLM or metric.startswith("nv_inference_")


def is_of_pods(metric: str) -> bool:
    """Tell whether a metric is about running Pods, of whatever workload."""
    return metric.startswith(("DCGM_FI_", "container_", "kube_pod_"))
