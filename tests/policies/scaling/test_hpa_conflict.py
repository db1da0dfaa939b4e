from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.scaling.hpa_conflict import check_autoscaler, check_scaled_object
from gpugate.policies.sdk.findings import Skip, Stance, Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"


def scaler(kind: str, name: str, target: str = "w", **metadata: object) -> dict[str, Any]:
    api = "keda.sh/v1alpha1" if kind == "ScaledObject" else "autoscaling/v2"
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": "research", **metadata},
        "spec": {"scaleTargetRef": {"name": target}},
    }


def test_without_facts_nothing_is_said(context: Contexts) -> None:
    scaled_object = context(scaler("ScaledObject", "s"))
    autoscaler = context(scaler("HorizontalPodAutoscaler", "h"))
    assert list(check_scaled_object(scaled_object.subject, scaled_object)) == [
        Skip("no horizontalpodautoscalers to look up"),
        Skip("no scaledobjects to look up"),
    ]
    assert list(check_autoscaler(autoscaler.subject, autoscaler)) == [Skip("no scaledobjects to look up")]


@pytest.mark.parametrize("spec", [{}, {"scaleTargetRef": {}}, {"scaleTargetRef": "w"}])
def test_a_scaler_without_a_target_is_no_conflict(context: Contexts, spec: dict[str, Any]) -> None:
    ctx = context({**scaler("ScaledObject", "s"), "spec": spec})
    assert list(check_scaled_object(ctx.subject, ctx)) == []


WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: w, namespace: research}
spec: {template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: s, namespace: research}
spec: {scaleTargetRef: {name: w}}
"""


def test_both_are_named(context: Contexts) -> None:
    ctx = context(scaler("HorizontalPodAutoscaler", "h"), facts=WORKLOAD)
    (violation,) = check_autoscaler(ctx.subject, ctx)
    assert isinstance(violation, Violation)
    assert violation.message == "HorizontalPodAutoscaler h and ScaledObject s both scale Deployment w"
    assert violation.at_most is Stance.ENFORCE


def test_an_object_is_no_conflict_with_itself(context: Contexts) -> None:
    ctx = context(scaler("ScaledObject", "s"), facts=WORKLOAD)
    assert list(check_scaled_object(ctx.subject, ctx)) == []
