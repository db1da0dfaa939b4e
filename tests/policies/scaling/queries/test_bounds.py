from __future__ import annotations

from fractions import Fraction

import pytest

from gpugate.policies.scaling._queries import most
from gpugate.policies.sdk.promql import read

BOUNDS = {
    "an average": ('avg(DCGM_FI_DEV_GPU_UTIL{pod=~"a-.*"})', 100),
    "the metric itself": ("DCGM_FI_DEV_GPU_UTIL", 100),
    "a maximum of averages over a time": ("max(avg_over_time(vllm:kv_cache_usage_perc[5m]))", 1),
    "a quantile": ("quantile by (model) (0.9, nv_gpu_utilization)", 1),
    "a ratio as percent": ("100 * avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE)", 100),
    "a percentage as ratio": ("avg(DCGM_FI_DEV_GPU_UTIL) / 100", 1),
    "0 where there is nothing": ("avg(DCGM_FI_DEV_GPU_UTIL) / 200 or vector(0)", Fraction(1, 2)),
    "a sum": ("sum(DCGM_FI_DEV_GPU_UTIL)", None),
    "a count": ("count(DCGM_FI_DEV_GPU_UTIL)", None),
    "an unbounded metric": ("avg(vllm:num_requests_waiting)", None),
    "two metrics": ("avg(DCGM_FI_DEV_GPU_UTIL) * avg(up)", None),
    "two steps": ("avg(DCGM_FI_DEV_GPU_UTIL) * 2 * 3", None),
    "one plus": ("avg(DCGM_FI_DEV_GPU_UTIL) + 1", None),
    "something where there is nothing": ("avg(DCGM_FI_DEV_GPU_UTIL) or vector(500)", None),
    "divided by nothing": ("avg(DCGM_FI_DEV_GPU_UTIL) / 0", None),
    "a number divided by it": ("100 / avg(DCGM_FI_DEV_GPU_UTIL)", None),
    "no query": ("", None),
}


@pytest.mark.parametrize(("query", "bound"), BOUNDS.values(), ids=BOUNDS)
def test_the_most_a_query_can_be(query: str, bound: Fraction | None) -> None:
    assert most(read(query)) == bound
