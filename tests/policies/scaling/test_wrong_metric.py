from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.scaling.wrong_metric import check
from gpugate.policies.sdk.findings import Patches, Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"
CORRECTED = {
    "a name": ("sum(vllm_num_requests_running)", "sum(vllm:num_requests_running)"),
    "a rate": ("sum(rate(DCGM_FI_DEV_GPU_UTIL[1m]))", "sum(avg_over_time(DCGM_FI_DEV_GPU_UTIL[1m]))"),
    "both": ("irate(vllm_num_requests_running[1m])", "avg_over_time(vllm:num_requests_running[1m])"),
    "twice": (
        "vllm_num_requests_running + vllm_num_requests_waiting # vllm_num_requests_running",
        "vllm:num_requests_running + vllm:num_requests_waiting # vllm_num_requests_running",
    ),
    "only what is wrong": (
        'rate(vllm_prompt_tokens_total{a="vllm_prompt_tokens_total"}[1m])',
        'rate(vllm:prompt_tokens_total{a="vllm_prompt_tokens_total"}[1m])',
    ),
}


@pytest.mark.parametrize(("query", "corrected"), CORRECTED.values(), ids=CORRECTED)
def test_the_fix_changes_what_is_wrong_and_nothing_else(context: Contexts, query: str, corrected: str) -> None:
    ctx = context(
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "spec": {
                "scaleTargetRef": {"name": "w"},
                "triggers": [{"type": "prometheus", "metadata": {"query": query}}],
            },
        }
    )
    fixes = [item.fix for item in check(ctx.subject, ctx) if isinstance(item, Violation)]
    assert {fix.patches[0].value for fix in fixes if isinstance(fix, Patches)} == {corrected}
