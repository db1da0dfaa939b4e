"""A workload that is scaled on what only its own Pods measure never leaves zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

# Of vLLM itself: without a Pod there is no such series.
OF_VLLM = "vllm:num_requests_waiting"
OF_RABBITMQ = "rabbitmq_queue_messages"
OF_ITS_PODS = f'sum({OF_VLLM}{{namespace="%s"}})'
OF_THE_QUEUE = f'sum({OF_RABBITMQ}{{queue="%s"}})'
WAITING = 12.0


@pytest.mark.quick
@pytest.mark.harm("scaling/scale-from-zero-deadlock")
def test_it_never_leaves_zero(harm: Harm) -> None:
    for side in harm.sides:
        # Given: no replica yet, and requests that wait in a queue.
        side.create(side.pool(["g5.xlarge", "g5.2xlarge"]), side.deployment("serve", 0))
        side.prometheus.measure(
            OF_VLLM, {"namespace": side.name}, lambda side=side: [WAITING] if side.running("serve") else []
        )
        side.prometheus.measure(OF_RABBITMQ, {"queue": side.name}, lambda: [WAITING])
        if side.guarded:
            harm.refused(scaled(side, OF_ITS_PODS), "with the length of the queue as its metric the workload starts")
            side.create(scaled(side, OF_THE_QUEUE))
        else:
            side.create(scaled(side, OF_ITS_PODS))

    harm.happens(
        "KEDA polls the metric, which has no result, and the workload stays at 0 while requests wait",
        lambda: polled(harm.without) >= 3 and is_inactive(harm.without),
    )
    assert harm.guarded.until_running("serve")
    assert not harm.without.pods("serve")


def polled(side: Side) -> int:
    """Return how often KEDA has asked for the metric of its Pods."""
    return side.prometheus.queried(OF_ITS_PODS % side.name)


def is_inactive(side: Side) -> bool:
    """Whether KEDA says that the workload need not run."""
    conditions = [one for made in side.all("ScaledObject") for one in made.get("status", {}).get("conditions", ())]
    return any(one["type"] == "Active" and one["status"] == "False" for one in conditions)


def scaled(side: Side, query: str) -> dict[str, Any]:
    metadata = {"serverAddress": side.prometheus.url, "query": query % side.name, "threshold": "5"}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "serve"},
        "spec": {
            "scaleTargetRef": {"name": "serve"},
            "minReplicaCount": 0,
            "maxReplicaCount": 2,
            "pollingInterval": 2,
            "cooldownPeriod": 300,
            "triggers": [{"type": "prometheus", "metadata": metadata}],
        },
    }
