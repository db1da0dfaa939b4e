"""A pool for training that consolidates nodes in use evicts what nobody has marked as training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harms.manifests import CONSOLIDATES, EMPTY_GOES

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

TYPES = ("g5.xlarge", "g5.12xlarge")


@pytest.mark.harm("nodepools/training-consolidates")
def test_a_node_in_use_is_consolidated(harm: Harm) -> None:
    harm.refused(pool(harm.guarded, CONSOLIDATES))
    harm.without.create(pool(harm.without, CONSOLIDATES))
    harm.guarded.create(pool(harm.guarded, {**EMPTY_GOES, "consolidateAfter": "30m"}))
    for side in harm.sides:
        # Given: a run that does not say that it trains shares a node of four GPUs with a neighbour, who then leaves.
        side.create(side.deployment("neighbour", gpus=3, workload="batch"))
        side.until_running("neighbour")
        side.create(side.deployment("run", workload="batch"))
        side.until_running("run")
        side.scale(side.deployment("neighbour"), 0)

    harm.happens("Karpenter evicts the run to move it to a smaller node", lambda: harm.without.ended("run"))

    harm.prevented(
        "the NodePool is denied; with WhenEmpty Karpenter disrupts no node in use",
        lambda: harm.guarded.said("Unconsolidatable", "not empty"),
    )
    assert harm.guarded.running("run")
    assert not harm.guarded.ended("run")


def pool(side: Side, disruption: dict[str, str]) -> dict[str, Any]:
    return side.pool(TYPES, workload="training", disruption=disruption)
