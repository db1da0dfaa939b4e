"""KEDA takes a query without a result for 0, and scales the workload down under full load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harms.side import enough

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

METRIC = "vllm:num_requests_waiting"
QUERY = f'sum({METRIC}{{namespace="%s"}})'
THRESHOLD = 5
WAITING = 12.0
# What the load needs: 12 requests at 5 for each replica.
REPLICAS = 3


@pytest.mark.harm("scaling/empty-result-is-zero")
def test_a_lost_series_scales_down(harm: Harm) -> None:
    series = {side.name: [WAITING] for side in harm.sides}
    refused = scaled(harm.guarded)
    for side in harm.sides:
        side.prometheus.measure(METRIC, {"namespace": side.name}, lambda side=side: series[side.name])
        side.create(side.pool(["g5.xlarge", "g5.2xlarge"]), side.deployment("serve"))
    harm.guarded.until(lambda: harm.guarded.asked(refused).warnings, "gpugate knows the Deployment")
    harm.refused(refused, 'with ignoreNullValues: "false" KEDA uses the fallback, and the replicas stay')
    harm.without.create(scaled(harm.without))
    harm.guarded.create(scaled(harm.guarded, ignoreNullValues="false"))
    for side in harm.sides:
        side.until_running("serve", REPLICAS)
        # Given: as many replicas as the load needs, whose metrics Prometheus then loses.
        series[side.name].clear()

    harm.happens(
        f"when the query has no result, the workload is scaled from {REPLICAS} replicas to 1 under full load",
        lambda: harm.without.said("SuccessfulRescale", "New size: 1") and enough(harm.without.ended("serve"), 2),
    )

    harm.guarded.until(lambda: falls_back(harm.guarded), "KEDA uses the fallback", 120)
    harm.guarded.until(lambda: is_measured(harm.guarded), "the autoscaler has the replicas of the fallback")
    assert len(harm.guarded.running("serve")) == REPLICAS
    assert not harm.guarded.ended("serve")


def falls_back(side: Side) -> bool:
    """Whether KEDA says that it uses the fallback."""
    conditions = [one for made in side.all("ScaledObject") for one in made.get("status", {}).get("conditions", ())]
    return any(one["type"] == "Fallback" and one["status"] == "True" for one in conditions)


def is_measured(side: Side) -> bool:
    """Whether the HPA controller has what the fallback makes of the metric: the threshold for each replica."""
    metrics = [one for hpa in side.all("HorizontalPodAutoscaler") for one in hpa["status"].get("currentMetrics") or ()]
    return any(one.get("external", {}).get("current", {}).get("averageValue") == str(THRESHOLD) for one in metrics)


def scaled(side: Side, **metadata: str) -> dict[str, Any]:
    trigger = {"serverAddress": side.prometheus.url, "query": QUERY % side.name, "threshold": str(THRESHOLD)}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "serve"},
        "spec": {
            "scaleTargetRef": {"name": "serve"},
            "minReplicaCount": 1,
            "maxReplicaCount": 4,
            "pollingInterval": 2,
            "fallback": {"failureThreshold": 1, "replicas": REPLICAS},
            # By default replicas go five minutes after the metric has fallen.
            "advanced": {
                "horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
            },
            "triggers": [{"type": "prometheus", "metadata": {**trigger, **metadata}}],
        },
    }
