"""A rollout that starts a new Pod before an old one stops does not end where no GPU is free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cluster.simulated_types import GPU

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

OLD_FIRST = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
# When the Deployment controller reports a rollout without progress; ten minutes by default.
DEADLINE_SECONDS = 20


@pytest.mark.harm("pods/surging-rollout")
def test_the_new_pod_waits_for_the_gpu_of_the_old_one(harm: Harm) -> None:
    # Given: a pool that may have one GPU, and a Deployment whose one Pod uses it.
    for side in harm.sides:
        side.create(side.pool(["g5.xlarge", "g5.2xlarge"], limits={GPU: "1"}))
    surging = serving(harm.guarded)
    harm.guarded.until(lambda: harm.guarded.asked(surging).warnings, "gpugate knows the NodePool")
    harm.refused(surging, "with maxSurge: 0 the old Pod stops first, and the rollout ends")
    harm.without.create(serving(harm.without))
    harm.guarded.create(serving(harm.guarded, strategy=OLD_FIRST))
    for side in harm.sides:
        side.until(lambda side=side: is_rolled_out(side), "the first Pod runs", 120)
        side.roll_out(serving(side))

    harm.happens(
        "the rollout does not end: the new Pod waits for the GPU of the old Pod, which runs until the new one is ready",
        lambda: (
            progressing(harm.without) == ("False", "ProgressDeadlineExceeded") and harm.without.unscheduled("serve")
        ),
    )
    assert [is_new(pod) for pod in harm.without.running("serve")] == [False]
    assert harm.without.said("FailedScheduling", "exceed limits for nodepool")

    harm.guarded.until(lambda: is_rolled_out(harm.guarded), "the rollout ends")
    assert [is_new(pod) for pod in harm.guarded.running("serve")] == [True]
    assert [len(side.nodes()) for side in harm.sides] == [1, 1]


def serving(side: Side, **spec: Any) -> dict[str, Any]:
    made = side.deployment("serve")
    made["spec"].update(spec, progressDeadlineSeconds=DEADLINE_SECONDS)
    return made


def is_new(pod: dict[str, Any]) -> bool:
    """Whether a Pod is of the version that `Side.roll_out` makes."""
    return "example.com/version" in pod["metadata"].get("annotations", {})


def is_rolled_out(side: Side) -> bool:
    """Whether the controller says of the newest version that all its Pods are available, and no other is left."""
    return any(
        made["status"].get("observedGeneration") == made["metadata"]["generation"]
        and made["status"].get("updatedReplicas") == made["status"].get("availableReplicas") == 1
        for made in side.all("Deployment")
    ) and progressing(side) == ("True", "NewReplicaSetAvailable")


def progressing(side: Side) -> tuple[str, str]:
    """What the controller says of the rollout: status and reason."""
    conditions = [one for made in side.all("Deployment") for one in made.get("status", {}).get("conditions", ())]
    return next(((one["status"], one["reason"]) for one in conditions if one["type"] == "Progressing"), ("", ""))
