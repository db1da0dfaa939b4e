"""Karpenter moves a training Pod to save money, and what it computed is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harms.manifests import CONSOLIDATES

if TYPE_CHECKING:
    from harms.harm import Harm


@pytest.mark.quick
@pytest.mark.harm("pods/unprotected-training")
def test_consolidation_evicts_a_training_pod(harm: Harm) -> None:
    for side in harm.sides:
        # Given: training shares a node of four GPUs with a neighbour, who then leaves.
        side.create(side.pool(["g5.xlarge", "g5.12xlarge"], disruption=CONSOLIDATES))
        side.create(side.deployment("neighbour", gpus=3))
        side.until_running("neighbour")
        side.create(side.deployment("train", workload="training"))
        side.until_running("train")
        side.scale(side.deployment("neighbour"), 0)

    harm.happens("Karpenter evicts the training Pod to move it to a smaller node", lambda: harm.without.ended("train"))

    harm.prevented(
        "gpugate adds karpenter.sh/do-not-disrupt, and Karpenter reports that it cannot disrupt the node",
        lambda: harm.guarded.said("DisruptionBlocked", "do-not-disrupt"),
    )
    assert harm.guarded.running("train")
    assert not harm.guarded.ended("train")
