"""KEDA lets a ScaledObject that names no maximum grow to 100 replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side


@pytest.mark.quick
@pytest.mark.harm("scaling/unbounded-replicas")
def test_keda_takes_a_hundred_for_the_maximum(harm: Harm) -> None:
    for side in harm.sides:
        side.create(side.deployment("serve", 0))

    # Given: nothing is said of how many replicas there may be.
    harm.without.create(scaled(harm.without))
    hpa = harm.happens(
        "KEDA creates a HorizontalPodAutoscaler with up to 100 replicas, which request 100 GPUs",
        lambda: [hpa for hpa in harm.without.all("HorizontalPodAutoscaler") if hpa["spec"]["maxReplicas"] == 100],
    )
    assert hpa

    harm.refused(scaled(harm.guarded), "with maxReplicaCount: 8 KEDA scales to at most 8")
    harm.guarded.create(scaled(harm.guarded, maxReplicaCount=8))
    made = harm.guarded.until(lambda: harm.guarded.all("HorizontalPodAutoscaler"), "an HPA is made")
    assert made[0]["spec"]["maxReplicas"] == 8


def scaled(side: Side, **spec: Any) -> dict[str, Any]:
    trigger = {
        "type": "prometheus",
        "metadata": {"serverAddress": side.prometheus.url, "query": "queue_depth", "threshold": "5"},
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "serve"},
        "spec": {"scaleTargetRef": {"name": "serve"}, "triggers": [trigger], **spec},
    }
