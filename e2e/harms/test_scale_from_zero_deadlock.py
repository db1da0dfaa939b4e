"""A workload that is scaled on what only its own Pods measure never leaves zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from harms.harm import Harm
    from harms.side import Side

# Of vLLM itself: without a Pod there is no such series.
OF_ITS_PODS = 'sum(vllm:num_requests_waiting{namespace="%s"})'
OF_THE_QUEUE = 'sum(rabbitmq_queue_messages{queue="%s"})'
WAITING = 12.0


@pytest.mark.quick
@pytest.mark.harm("scaling/scale-from-zero-deadlock")
def test_it_never_leaves_zero(harm: Harm) -> None:
    for side in harm.sides:
        # Given: no replica yet, and requests that wait in a queue.
        side.create(side.pool(["g5.xlarge", "g5.2xlarge"]), side.deployment("serve", 0))
        asked = counted(side, OF_ITS_PODS, lambda side=side: [WAITING] if side.running("serve") else [])
        counted(side, OF_THE_QUEUE, lambda: [WAITING])
        if side.guarded:
            harm.refused(scaled(side, OF_ITS_PODS), "with the length of the queue as its metric the workload starts")
            side.create(scaled(side, OF_THE_QUEUE))
        else:
            side.create(scaled(side, OF_ITS_PODS))
            polled = asked

    harm.happens(
        "KEDA polls the metric, which has no result, and the workload stays at 0 while requests wait",
        lambda: len(polled) >= 3 and is_inactive(harm.without),
    )
    assert harm.guarded.until_running("serve")
    assert not harm.without.pods("serve")


def counted(side: Side, query: str, answer: Callable[[], list[float]]) -> list[list[float]]:
    """Answer a query of a side, and return where each answer is added."""
    given: list[list[float]] = []

    def add() -> list[float]:
        given.append(answer())
        return given[-1]

    side.prometheus.set(query % side.name, add)
    return given


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
