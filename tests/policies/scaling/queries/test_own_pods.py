from __future__ import annotations

import pytest

from gpugate.policies.scaling._queries import only_of_own_pods
from gpugate.policies.sdk.promql import read

OWN = {
    "a server's metric": "sum(vllm:num_requests_waiting)",
    "one misnamed": "sum(vllm_num_requests_waiting)",
    "a server's histogram": "histogram_quantile(0.9, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[1m])))",
    "Triton's": "sum(rate(nv_inference_request_success[1m]))",
    "of its namespace": 'sum(vllm:num_requests_waiting{namespace="ml"})',
    "GPUs of its Pods": 'avg(DCGM_FI_DEV_GPU_UTIL{pod=~"llm-.*"})',
    "GPUs of Pods that begin alike": 'avg(DCGM_FI_DEV_GPU_UTIL{exported_pod=~"ll.*"})',
    "one of its Pods": 'container_memory_usage_bytes{pod="llm-0"}',
    "any metric of its Pods": 'sum(http_requests_total{pod=~"llm-.+"})',
    "0 in place of nothing": "sum(vllm:num_requests_waiting) or vector(0)",
}
NOT_OWN = {
    "the router's": "sum(vllm:num_incoming_requests_total)",
    "a server's and the router's": "sum(vllm:num_requests_waiting) + sum(vllm:num_incoming_requests_total)",
    "of another namespace": 'sum(vllm:num_requests_waiting{namespace="other"})',
    "of other Pods": 'sum(vllm:num_requests_waiting{pod=~"router-.*"})',
    "GPUs of everybody": "avg(DCGM_FI_DEV_GPU_UTIL)",
    "GPUs of everybody, as a pattern": 'avg(DCGM_FI_DEV_GPU_UTIL{pod=~".*"})',
    "GPUs of one or other": 'avg(DCGM_FI_DEV_GPU_UTIL{pod=~"llm-.*|vision-.*"})',
    "GPUs of Pods with an optional letter": 'avg(DCGM_FI_DEV_GPU_UTIL{pod=~"l?vision-.*"})',
    "GPUs of all but its Pods": 'avg(DCGM_FI_DEV_GPU_UTIL{pod!~"llm-.*"})',
    "any metric of Pods that begin alike": 'sum(http_requests_total{pod=~"ll.*"})',
    "any metric of Pods that begin with its name": 'sum(http_requests_total{pod=~"llm-gateway-.*"})',
    "any metric": "sum(http_requests_total)",
    "1 in place of nothing": "sum(vllm:num_requests_waiting) or vector(1)",
    "1 where there is nothing": "absent(vllm:num_requests_waiting)",
    "the clock": "sum(vllm:num_requests_waiting) or vector(hour())",
    "no metric": "1",
}


@pytest.mark.parametrize("query", OWN.values(), ids=OWN)
def test_without_pods_of_the_workload_there_is_no_result(query: str) -> None:
    assert only_of_own_pods(read(query), "llm", "ml")


@pytest.mark.parametrize("query", NOT_OWN.values(), ids=NOT_OWN)
def test_something_else_may_give_a_result(query: str) -> None:
    assert not only_of_own_pods(read(query), "llm", "ml")
