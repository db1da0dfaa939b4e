"""Queries of alerts that are nearly alike, of which some compute what their threshold is not meant for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.monitoring import stale_metric, wrong_formula
from gpugate.policies.sdk.findings import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"
USED, FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
NODE = """
apiVersion: v1
kind: Node
metadata: {name: mig-1}
status: {allocatable: {nvidia.com/mig-1g.5gb: "7"}}
"""


def rule(expr: str) -> dict[str, Any]:
    rules = [{"alert": "A", "expr": expr}]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "spec": {"groups": [{"name": "g", "rules": rules}]},
    }


def messages(check: Any, ctx: Context[Any]) -> list[str]:
    return [found.message for found in check(ctx.subject, ctx) if isinstance(found, Violation)]


@pytest.mark.parametrize(
    ("expr", "found"),
    [
        pytest.param(f"{USED} / {FREE} > 0.9", True, id="plain"),
        pytest.param(f"sum by (pod) ({USED}) / sum by (pod) ({FREE}) > 0.9", True, id="sums"),
        pytest.param(f"{USED}{{gpu='0'}}/ignoring(x){FREE}{{gpu='0'}} >= 0.8", True, id="labels"),
        pytest.param(f"100 * {USED} / {FREE} > 90", True, id="percent"),
        pytest.param(f"{USED} * 100 / {FREE} > 90", True, id="percent-inside"),
        pytest.param(f"{USED} / ({FREE} + {USED}) > 0.9", False, id="whole"),
        pytest.param(f"{USED} / ({USED} + {FREE}) > 0.9", False, id="whole-in-another-order"),
        pytest.param(f"{FREE} / {USED} > 0.9", False, id="free-by-used"),
        pytest.param(f"1 - {USED} / {FREE} > 0.9", False, id="difference"),
        pytest.param(f"{USED} / {FREE} > 1.5", False, id="above-one"),
        pytest.param(f"{USED} / {FREE} > 0.1", False, id="low"),
        pytest.param(f"{USED} / {FREE} * 8 > 0.9", False, id="another-factor"),
        pytest.param(f"{USED} / {FREE}", False, id="no-threshold"),
        pytest.param(f"{USED} / {FREE} > bool 0.9", False, id="bool"),
        pytest.param(f"{USED} > 0.9 and {FREE} / 1024 > 1", False, id="two-conditions"),
        pytest.param(f"label_replace({USED}, 'a', '{USED} / {FREE}', '', '') > 0.9", False, id="in-a-string"),
        pytest.param("", False, id="empty"),
    ],
)
def test_used_by_free_memory(expr: str, found: bool, context: Contexts) -> None:  # noqa: FBT001 -- a column of the table
    assert bool(messages(wrong_formula.check, context(rule(expr)))) is found


@pytest.mark.parametrize("limit", ["0.5", "0.75", "0.8", "0.9", "0.95", "1"])
def test_the_message_tells_the_used_share_at_which_the_alert_fires(limit: str, context: Contexts) -> None:
    (message,) = messages(wrong_formula.check, context(rule(f"{USED} / {FREE} > {limit}")))

    threshold = float(message.split(" is ")[1].split(" ")[0])
    share = float(message.split("when ")[1].split("%")[0]) / 100
    # Of a GPU of which this share is used, used divided by free memory is the threshold.
    assert share / (1 - share) == pytest.approx(threshold, abs=0.05)


@pytest.mark.parametrize(
    ("expr", "found"),
    [
        pytest.param("avg_over_time(DCGM_FI_DEV_GPU_UTIL[30m]) < 10", True, id="low"),
        pytest.param("max by (exported_pod) (DCGM_FI_DEV_GPU_UTIL{exported_pod!=''}) <= 5", True, id="labels-of-pods"),
        pytest.param("DCGM_FI_DEV_GPU_UTIL > 90", False, id="high"),
        pytest.param("DCGM_FI_DEV_GPU_UTIL > 5 and DCGM_FI_DEV_GPU_UTIL < 10", False, id="a-band"),
        pytest.param("DCGM_FI_DEV_GPU_UTIL{GPU_I_ID=''} < 10", False, id="no-slices"),
        pytest.param("DCGM_FI_DEV_GPU_UTIL{modelName=~'.*H100.*'} < 10", False, id="some-models"),
        pytest.param(
            "DCGM_FI_DEV_GPU_UTIL < 10 unless DCGM_FI_PROF_GR_ENGINE_ACTIVE > 0.1", False, id="with-engine-activity"
        ),
        pytest.param("count(DCGM_FI_DEV_GPU_UTIL)", False, id="no-threshold"),
    ],
)
def test_low_utilization_with_slices(expr: str, found: bool, context: Contexts) -> None:  # noqa: FBT001 -- as above
    assert bool(messages(wrong_formula.check, context(rule(expr), NODE))) is found
    assert not messages(wrong_formula.check, context(rule(expr)))


@pytest.mark.parametrize(
    ("expr", "found"),
    [
        pytest.param("karpenter_nodepool_usage > 1", ["karpenter_nodepools_usage"], id="renamed"),
        pytest.param("sum(karpenter_pods_startup_time_seconds_count) > 1", ["karpenter_pods_startup_duration_seconds"], id="count"),
        pytest.param("karpenter_nodes_created_total > 1", [], id="total-is-no-end-of-a-family"),
        pytest.param("karpenter_scheduler_scheduling_duration_seconds_bucket > 1", [], id="of-today"),
        pytest.param("karpenter_nodepool_usage_total > 1", [], id="a-name-that-never-was"),
        pytest.param("rate(karpenter_consistency_errors[5m]) > 1", ["since 1.0"], id="dropped"),
        pytest.param("karpenter_nodeclaims_terminated_total{reason=~'a|b'} > 1", ["no label reason"], id="label"),
        pytest.param("karpenter_nodeclaims_terminated_total{reason=~'.*'} > 1", [], id="a-pattern-that-matches-nothing-too"),
        pytest.param("karpenter_nodeclaims_terminated_total{reason!='a'} > 1", [], id="all-but-a-reason"),
        pytest.param("karpenter_nodepool_usage / karpenter_nodepool_limit > 0.9",
                     ["karpenter_nodepools_usage", "karpenter_nodepools_limit"], id="two"),
    ],
)  # fmt: skip
def test_former_metrics(expr: str, found: list[str], context: Contexts) -> None:
    reported = messages(stale_metric.check, context(rule(expr)))

    assert [name in message for name, message in zip(found, reported, strict=True)] == [True] * len(found)
