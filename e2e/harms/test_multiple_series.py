"""KEDA refuses a query with a series for each Pod as soon as there are two Pods, and scaling stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

METRIC = "vllm:num_requests_waiting"
OF_EACH_POD = f'{METRIC}{{namespace="%s"}}'
OF_ALL_PODS = f"sum({OF_EACH_POD})"
# Of each Pod: one Pod needs a second one, and two need more.
WAITING = 8.0
MOST = 4


@pytest.mark.harm("scaling/multiple-series")
def test_scaling_stops_at_the_second_pod(harm: Harm) -> None:
    # Given: a server, of which each Pod measures how many requests wait for it.
    for side in harm.sides:
        side.prometheus.measure(METRIC, {"namespace": side.name}, lambda side=side: waiting(side))
        side.create(side.pool(["g5.xlarge", "g5.2xlarge"]), side.deployment("serve"))
        side.until_running("serve")
    refused = scaled(harm.guarded, OF_EACH_POD)
    harm.guarded.until(lambda: harm.guarded.asked(refused).warnings, "gpugate knows the Deployment")
    harm.refused(refused, f"with sum() the workload is scaled to {MOST} replicas")
    harm.without.create(scaled(harm.without, OF_EACH_POD))
    harm.guarded.create(scaled(harm.guarded, OF_ALL_PODS))

    harm.happens(
        "with two Pods KEDA reports that the query returned multiple elements, and the workload stays at 2 replicas",
        lambda: (
            len(harm.without.running("serve")) == 2
            and harm.without.said("KEDAScalerFailed", "returned multiple elements")
            and harm.without.said("FailedGetExternalMetric")
        ),
    )
    assert harm.guarded.until_running("serve", MOST)
    assert len(harm.without.pods("serve")) == 2


def waiting(side: Side) -> list[float]:
    return [WAITING for _ in side.running("serve")]


def scaled(side: Side, query: str) -> dict[str, Any]:
    metadata = {"serverAddress": side.prometheus.url, "query": query % side.name, "threshold": "5"}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "serve"},
        "spec": {
            "scaleTargetRef": {"name": "serve"},
            "minReplicaCount": 1,
            "maxReplicaCount": MOST,
            "pollingInterval": 2,
            # Later than this test ends: until then the HPA controller gets the error itself.
            "fallback": {"failureThreshold": 100, "replicas": 2},
            "triggers": [{"type": "prometheus", "metadata": metadata}],
        },
    }
