from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.engine.config import ConfigError, parse
from gpugate.policies.scaling.unbounded_replicas import (
    Params,
    bound,
    check_autoscaler,
    check_scaled_job,
    check_scaled_object,
)
from gpugate.policies.sdk.findings import Patch, Skip, Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"
WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: w, namespace: research}
spec: {template: {spec: {containers: [{resources: {limits: {RESOURCE: COUNT}}}]}}}
"""


def workload(resource: str, count: int) -> str:
    return WORKLOAD.replace("RESOURCE", resource).replace("COUNT", str(count))


@pytest.mark.parametrize(
    ("resource", "count", "maximum", "message"),
    [
        ("nvidia.com/gpu", 8, 8, None),
        ("nvidia.com/gpu", 8, 9, "9 x 8 GPUs = 72 GPUs (maximum: 64)"),
        ("nvidia.com/mig-1g.10gb", 1, 448, None),
        ("nvidia.com/mig-1g.10gb", 1, 449, "449 x 1/7 GPUs = 65 GPUs (maximum: 64)"),
        ("cpu", 8, 10000, None),
    ],
)
def test_an_autoscaler_may_reach_so_many_gpus(
    context: Contexts, resource: str, count: int, maximum: int, message: str | None
) -> None:
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "spec": {"scaleTargetRef": {"name": "w"}, "maxReplicas": maximum},
    }
    ctx = context(autoscaler, facts=workload(resource, count), params=Params())
    found = [item.message for item in check_autoscaler(ctx.subject, ctx) if isinstance(item, Violation)]
    assert found == ([message] if message else [])


def test_a_scaled_job_with_an_unknown_claim_is_skipped(context: Contexts) -> None:
    spec = {"resourceClaims": [{"name": "x", "resourceClaimTemplateName": "t"}]}
    container = {"name": "c", "resources": {"claims": [{"name": "x"}]}}
    job = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledJob",
        "spec": {"jobTargetRef": {"template": {"spec": {**spec, "containers": [container]}}}},
    }
    ctx = context(job, params=Params())
    assert list(check_scaled_job(ctx.subject, ctx)) == [Skip("the devices of claim x are unknown")]


def scaled_object(**spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "spec": {"scaleTargetRef": {"name": "w"}, "triggers": [{"type": "prometheus"}], **spec},
    }


ALL = Params(default_max=8, default_fallback=True, default_stabilization=300)


@pytest.mark.parametrize(
    ("spec", "given"),
    [
        pytest.param({}, {"maxReplicaCount", "fallback", "behavior"}, id="nothing said"),
        pytest.param({"maxReplicaCount": 12}, {"fallback", "behavior"}, id="a maximum"),
        pytest.param({"fallback": {"replicas": 1}}, {"maxReplicaCount", "behavior"}, id="a fallback"),
        pytest.param({"triggers": [{"type": "cpu"}]}, {"maxReplicaCount", "behavior"}, id="KEDA refuses one for cpu"),
        pytest.param(
            {"triggers": [{"type": "prometheus", "metricType": "Value"}]},
            {"maxReplicaCount", "behavior"},
            id="KEDA has none for values while nothing is ready",
        ),
        pytest.param(
            {"advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": {}}}}},
            {"maxReplicaCount", "fallback"},
            id="a behavior",
        ),
    ],
)
def test_only_what_is_absent_is_given(context: Contexts, spec: dict[str, Any], given: set[str]) -> None:
    ctx = context(scaled_object(**spec), facts=workload("nvidia.com/gpu", 1), params=ALL)
    assert {item.path[-1] for item in bound(ctx.subject, ctx) if isinstance(item, Patch)} == given


@pytest.mark.parametrize("facts", ["", workload("cpu", 1)], ids=["unknown", "no GPUs"])
def test_only_gpu_workloads_get_defaults(context: Contexts, facts: str) -> None:
    ctx = context(scaled_object(), facts=facts, params=ALL)
    assert list(bound(ctx.subject, ctx)) == []


def test_a_default_above_the_bound_is_refused() -> None:
    with pytest.raises(ConfigError, match="default_max 30 is above max_replicas 20"):
        parse({"default_max": 30}, Params, ())


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            workload("nvidia.com/gpu", 8),
            "missing maxReplicaCount, so KEDA's default of 100 applies: 100 x 8 GPUs = 800 GPUs (maximum: 20 replicas)",
        ),
        (
            "",
            (
                "missing maxReplicaCount, so KEDA's default of 100 applies (maximum: 20 replicas); "
                "it is not known whether Deployment w requests GPUs"
            ),
        ),
        (workload("cpu", 8), None),
    ],
)
def test_it_says_when_the_target_is_not_known(context: Contexts, facts: str, message: str | None) -> None:
    scaler = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": {"scaleTargetRef": {"name": "w"}}}
    ctx = context(scaler, facts=facts, params=Params())
    assert [found.message for found in check_scaled_object(ctx.subject, ctx)] == ([message] if message else [])
