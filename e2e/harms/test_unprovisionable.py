"""Karpenter launches no node for a Pod that selects a zone in which no NodePool launches nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cluster.simulated_types import ZONES

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

ZONE = "topology.kubernetes.io/zone"
HERE, ELSEWHERE, *_ = ZONES


@pytest.mark.harm("pods/unprovisionable")
def test_no_pool_can_launch_a_node(harm: Harm) -> None:
    # Given: a pool of one zone.
    for side in harm.sides:
        side.create(
            side.pool(["g5.xlarge", "g5.2xlarge"], requirements=[{"key": ZONE, "operator": "In", "values": [HERE]}])
        )
    elsewhere = selecting(harm.guarded, ELSEWHERE)
    harm.guarded.until(lambda: harm.guarded.asked(elsewhere).warnings, "gpugate knows the NodePool")
    harm.without.create(selecting(harm.without, ELSEWHERE))

    harm.happens(
        f"the Pod stays Pending: it selects zone {ELSEWHERE}, in which no NodePool launches nodes",
        lambda: (
            harm.without.unscheduled("infer")
            and harm.without.said("FailedScheduling", f"{ZONE} In [{ELSEWHERE}] not in {ZONE} In [{HERE}]")
        ),
    )

    harm.refused(elsewhere, f"a Pod that selects zone {HERE} runs")
    harm.guarded.create(selecting(harm.guarded, HERE))
    assert harm.guarded.until_running("infer")
    assert not harm.without.node_claims()


def selecting(side: Side, zone: str) -> dict[str, Any]:
    """A Pod for the nodes of this side's pool in a zone."""
    made = side.pod("infer")
    made["spec"]["nodeSelector"][ZONE] = zone
    return made
