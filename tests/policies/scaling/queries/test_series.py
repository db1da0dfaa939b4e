"""Which queries return a series for each Pod or GPU, which KEDA refuses."""

from __future__ import annotations

import pytest

from gpugate.policies.scaling._queries import has_result_without_series, series_of_each_pod
from gpugate.policies.sdk.promql import read

MANY = [
    pytest.param("vllm:num_requests_waiting", id="a bare name"),
    pytest.param('vllm:num_requests_waiting{namespace="serving"}', id="selected by namespace"),
    pytest.param('vllm:num_requests_waiting{pod=~"llm-.*"}', id="selected by a pattern of Pods"),
    pytest.param("avg_over_time(vllm:num_requests_running[5m])", id="averaged over time"),
    pytest.param("rate(vllm:request_success_total[1m])", id="the rate of each counter"),
    pytest.param("vllm:num_requests_waiting > 0", id="compared with a number"),
    pytest.param("vllm:num_requests_waiting + vllm:num_requests_running", id="two metrics of each Pod"),
    pytest.param("DCGM_FI_DEV_GPU_UTIL", id="of each GPU"),
    pytest.param("nv_inference_queue_duration_us", id="of each Triton server"),
]
ONE_OR_UNKNOWN = [
    pytest.param("sum(vllm:num_requests_waiting)", id="a total"),
    pytest.param("max(avg_over_time(vllm:num_requests_waiting[1m]))", id="a maximum around a function"),
    pytest.param("sum by (model_name) (vllm:num_requests_waiting)", id="grouped: there may be one group"),
    pytest.param("topk(1, vllm:num_requests_waiting)", id="the largest one"),
    pytest.param('vllm:num_requests_waiting{pod="llm-0"}', id="one Pod"),
    pytest.param('DCGM_FI_DEV_GPU_UTIL{instance="10.0.0.7:9400"}', id="one exporter"),
    pytest.param("scalar(vllm:num_requests_waiting)", id="no vector"),
    pytest.param("absent(vllm:num_requests_waiting)", id="one series or none"),
    pytest.param("sum(gateway_requests) + vllm:num_requests_waiting", id="matched with a total, which has no labels"),
    pytest.param("gateway_requests", id="an unknown exporter"),
    pytest.param("gateway_requests + vllm:num_requests_waiting", id="with a metric of an unknown exporter"),
    pytest.param("", id="empty"),
    pytest.param("sum(", id="not finished"),
]


@pytest.mark.parametrize("text", MANY)
def test_a_query_that_nothing_aggregates_has_a_series_for_each(text: str) -> None:
    assert series_of_each_pod(read(text)) is not None


@pytest.mark.parametrize("text", ONE_OR_UNKNOWN)
def test_a_query_with_one_result_or_an_unknown_number_is_not_reported(text: str) -> None:
    assert series_of_each_pod(read(text)) is None


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("sum(x) or vector(0)", True),
        ("absent(x)", True),
        ("vector(1) or x", True),
        ("sum(x)", False),
        ("rate(x[1m])", False),
    ],
)
def test_some_functions_give_a_result_without_series(text: str, *, has: bool) -> None:
    assert has_result_without_series(read(text)) is has
