"""Server of language models that is scaled on GPU utilization.

## Why is this bad?
The workload scales to its maximum at low load and stays there, and its additional GPUs are paid for. GPU utilization says
how much of the time a GPU works, not how much work waits: a single request can keep it near 100 %.

## Instead
Scale on the requests that wait in the servers, or that run in them:

```yaml
triggers:
  - type: prometheus
    metadata:
      serverAddress: http://prometheus.monitoring:9090
      query: sum(vllm:num_requests_waiting{namespace="serving"})
      threshold: "5"
```

A ScaledObject or HorizontalPodAutoscaler is reported if its workload is known and runs vLLM, SGLang, Text Generation Inference,
TensorRT-LLM or llama.cpp on GPUs. The policy knows the metrics of DCGM for utilization, Triton's `nv_gpu_utilization`, and
`gpu_utilization` in a HorizontalPodAutoscaler. It does not report a query that also reads other metrics, or triggers that a
formula combines. `scaling/average-of-average` reports a query whose result never requests enough replicas.

## Sources
NVIDIA DCGM user guide, "Profiling Metrics" (graphics engine activity: the time that any engine was active); NVIDIA/dcgm-exporter
issues 301 and 269, bentoml/Yatai issue 500; Google Cloud, "Best practices for autoscaling large language model inference
workloads with GPUs" (2026-11: queue size or batch size instead of GPU utilization); vLLM `vllm/v1/metrics/loggers.py`; Text
Generation Inference and SGLang, "Metrics".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling._scaled_objects import has_formula, maximum, most_replicas, queries
from gpugate.policies.sdk.commands import started_programs
from gpugate.policies.sdk.facts import Need
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.model_servers import running_server
from gpugate.policies.sdk.objects import HORIZONTAL_POD_AUTOSCALER, SCALED_OBJECT
from gpugate.policies.sdk.pod_templates import pod_templates
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import (
    TARGET_KINDS,
    TARGET_NEEDS,
    most_for,
    scale_target,
    target_workload,
    workload_demand,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.policy import AnyContext

_UTILIZATION: Final = frozenset({"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "nv_gpu_utilization"})
# An adapter chooses the names of metrics for autoscalers: usually those of Prometheus, in any case.
_OF_AUTOSCALERS: Final = _UTILIZATION | {name.lower() for name in _UTILIZATION} | {"gpu_utilization"}
# Servers of language models, and the metric of their waiting requests; Triton also serves other models.
_WAITING: Final = {
    "SGLang": "sglang:num_queue_reqs",
    "TensorRT-LLM": "",
    "Text Generation Inference": "tgi_queue_size",
    "llama.cpp": "llamacpp:requests_deferred",
    "vLLM": "vllm:num_requests_waiting",
}
_STARTED: Final = tuple(
    Need(kind, tuple(f"spec.template.spec.containers.{name}" for name in ("args", "command", "image")))
    for kind in TARGET_KINDS
)
_NEEDS: Final = (*TARGET_NEEDS, *_STARTED)


@validates(SCALED_OBJECT, mode=Stance.WARN, needs=_NEEDS)
def check_scaled_object(scaled_object: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report each query that reads only GPU utilization."""
    if has_formula(scaled_object) or maximum(scaled_object) <= 1:
        return
    for trigger, query in ctx.derived(queries):
        metrics = {selector.metric for selector in query.selectors}
        if not metrics or not metrics <= _UTILIZATION:
            continue
        replicas = most_replicas(trigger, query)
        if replicas is None or replicas >= maximum(scaled_object):
            yield from _finding(trigger["metadata", "query"], min(metrics), scaled_object, ctx)


@validates(HORIZONTAL_POD_AUTOSCALER, mode=Stance.WARN, needs=_NEEDS)
def check_autoscaler(autoscaler: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report each metric that is GPU utilization."""
    for metric in autoscaler["spec", "metrics"]:
        for source in ("pods", "object", "external"):
            name = metric[source, "metric", "name"]
            if name.text in _OF_AUTOSCALERS:
                yield from _finding(name, name.text, autoscaler, ctx)


def _finding(where: Field, metric: str, scaler: Field, ctx: AnyContext) -> Iterator[Violation]:
    target = scale_target(scaler)
    workload = target_workload(target, ctx) if target else None
    server = _server(*workload) if workload else ""
    at_most = most_for(workload_demand(*workload, ctx)) if workload and server else Stance.OFF
    if at_most:
        waiting = f", such as sum({_WAITING[server]})" if _WAITING[server] else ""
        message = f"scales {server} on {metric}, which does not grow with the requests that wait"
        yield Violation(where.path, message, at_most, f"scale on the number of waiting requests{waiting}")


def _server(kind: Kind, workload: Field) -> str:
    """Return the language model server that a workload runs; empty if none is recognized."""
    containers = (
        container
        for template in pod_templates(kind.group, kind.name, workload)
        for container in template["spec", "containers"]
    )
    running = (running_server(container, started_programs(container) or ()) for container in containers)
    return next((program.server.name for program in running if program and program.server.name in _WAITING), "")
