from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.disruption._replicas import Replicas, replicas_of
from gpugate.policies.sdk.scale_targets import ScaleTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"


def scaled_object(spec: str = "") -> str:
    return (
        "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: s, namespace: research}\n"
        f"spec: {{scaleTargetRef: {{name: w}}{spec}}}\n"
    )


def autoscaler(spec: str = "", target: str = "w") -> str:
    return (
        "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, namespace: research}\n"
        f"spec: {{scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {target}}}, maxReplicas: 8{spec}}}\n"
    )


@pytest.mark.parametrize(
    ("replicas", "facts", "complete", "wanted"),
    [
        pytest.param(3, "", True, Replicas(3, 3, certain=True), id="its own number"),
        pytest.param(None, "", True, Replicas(1, 1, certain=True), id="one by default"),
        pytest.param(3, "", False, Replicas(3, 3, certain=False), id="something else may scale it"),
        pytest.param(3, autoscaler(), False, Replicas(1, 8, certain=True), id="autoscaler without a minimum"),
        pytest.param(3, autoscaler(", minReplicas: 2"), False, Replicas(2, 8, certain=True), id="autoscaler"),
        pytest.param(3, autoscaler(target="x"), True, Replicas(3, 3, certain=True), id="autoscaler of another"),
        pytest.param(3, scaled_object(), False, Replicas(0, 100, certain=True), id="KEDA's defaults"),
        pytest.param(
            3,
            scaled_object(", minReplicaCount: 2, maxReplicaCount: 6"),
            False,
            Replicas(2, 6, certain=True),
            id="ScaledObject",
        ),
        pytest.param(
            3,
            scaled_object(", minReplicaCount: 2, idleReplicaCount: 0"),
            False,
            Replicas(0, 100, certain=True),
            id="ScaledObject that idles below its minimum",
        ),
        pytest.param(
            3,
            scaled_object(", maxReplicaCount: 8") + autoscaler(),
            False,
            Replicas(0, 8, certain=True),
            id="ScaledObject and the autoscaler that KEDA makes for it",
        ),
    ],
)
def test_it_counts_the_pods_of_a_workload(
    context: Contexts,
    replicas: int | None,
    facts: str,
    complete: bool,  # noqa: FBT001 -- a column
    wanted: Replicas,
) -> None:
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "w"},
        "spec": {} if replicas is None else {"replicas": replicas},
    }
    ctx = context(workload, facts=facts, complete=complete)
    assert replicas_of(ctx.subject, ScaleTarget("apps", "Deployment", "w"), ctx) == wanted
