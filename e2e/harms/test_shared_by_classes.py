"""In a pool for training and inference, one small inference Pod holds a large training node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harms.manifests import EMPTY_GOES

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

TYPES = ("g5.12xlarge", "g5.24xlarge")


@pytest.mark.harm("nodepools/shared-by-classes")
def test_an_inference_pod_holds_a_training_node(harm: Harm) -> None:
    # Given: training takes three of a node's four GPUs; an inference Pod comes, then training ends.
    harm.refused(shared(harm.guarded))
    harm.without.create(shared(harm.without))
    of_training, of_inference = (f"{harm.guarded.name}-{name}" for name in ("training", "inference"))
    harm.guarded.create(
        harm.guarded.pool(TYPES, suffix="-training", workload="training"),
        harm.guarded.pool(("g5.xlarge", "g5.2xlarge"), suffix="-inference"),
    )
    pools = {harm.without: ("", ""), harm.guarded: (of_training, of_inference)}
    for side, (training, inference) in pools.items():
        side.create(side.pod("train", 3, workload="training", pool=training))
        side.until_running("train")
        side.create(side.pod("infer", pool=inference))
        side.until_running("infer")
        side.delete(side.pod("train", 3))

    harm.happens(
        "after training has ended, its node with four GPUs stays for an inference Pod that uses one",
        lambda: not harm.without.pods("train") and harm.without.said("Unconsolidatable", "node is not empty"),
    )
    assert harm.without.running("infer")
    needed = [node for node in harm.guarded.nodes() if node["metadata"]["name"] in in_use(harm.guarded)]
    harm.wastes(harm.without.nodes(), instead=needed)

    harm.prevented(
        "the NodePool gets a warning; with separate pools the training node is empty, and can be removed",
        lambda: [node for node in harm.guarded.nodes() if node["metadata"]["name"] not in in_use(harm.guarded)],
    )


def in_use(side: Side) -> set[str]:
    return {pod["spec"].get("nodeName", "") for pod in side.pods()}


def shared(side: Side) -> dict[str, Any]:
    pool = side.pool(TYPES, disruption=EMPTY_GOES)
    del pool["spec"]["template"]["metadata"]["labels"]["workload"]
    return pool
