"""Two HorizontalPodAutoscalers of one Deployment, the one of KEDA and another, stop each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side


@pytest.mark.harm("scaling/hpa-conflict")
def test_two_autoscalers_of_one_deployment(harm: Harm) -> None:
    for side in harm.sides:
        # Given: KEDA scales a Deployment, for which it makes an autoscaler.
        side.create(side.pool(["g5.xlarge", "g5.2xlarge"]), side.deployment("serve", 1))
        side.create(scaled(side))
        side.until(lambda side=side: side.all("HorizontalPodAutoscaler"), "KEDA makes an autoscaler", 120)
    harm.without.create(autoscaler())

    harm.happens(
        "the HPA controller reports AmbiguousSelector for both, and neither scales the workload",
        lambda: ambiguous(harm.without) == {"keda-hpa-serve", "serve"},
    )
    harm.guarded.until(lambda: not harm.guarded.asked(autoscaler()).ok, "gpugate knows the ScaledObject")
    harm.refused(autoscaler(), "only that of KEDA exists")
    names = [hpa["metadata"]["name"] for hpa in harm.guarded.all("HorizontalPodAutoscaler")]
    assert (names, ambiguous(harm.guarded)) == (["keda-hpa-serve"], set())


def ambiguous(side: Side) -> set[str]:
    """The autoscalers of which the controller says that others select the same Pods."""
    return {
        hpa["metadata"]["name"]
        for hpa in side.all("HorizontalPodAutoscaler")
        for one in hpa.get("status", {}).get("conditions", ())
        if (one["type"], one["status"], one["reason"]) == ("ScalingActive", "False", "AmbiguousSelector")
    }


def autoscaler() -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "serve"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"},
            "minReplicas": 1,
            "maxReplicas": 4,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
                }
            ],
        },
    }


def scaled(side: Side) -> dict[str, Any]:
    metadata = {"serverAddress": side.prometheus.url, "query": "queue_depth", "threshold": "5"}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "serve"},
        "spec": {
            "scaleTargetRef": {"name": "serve"},
            "minReplicaCount": 1,
            "maxReplicaCount": 4,
            "triggers": [{"type": "prometheus", "metadata": metadata}],
        },
    }
