"""A Spot pool of one instance family has nothing to launch when the capacity of that family is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cluster.simulated_types import SHORT_ON_SPOT, SPOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harms.harm import Harm
    from harms.side import Side

FAMILY = "karpenter.k8s.aws/instance-family"


@pytest.mark.quick
@pytest.mark.harm("nodepools/narrow-spot")
def test_no_capacity_in_one_family(harm: Harm) -> None:
    # Given: all sizes of one family, none of which has Spot capacity in any zone.
    harm.refused(pool(harm.guarded, [SHORT_ON_SPOT]))
    harm.without.create(pool(harm.without, [SHORT_ON_SPOT]))
    harm.guarded.create(pool(harm.guarded, [SHORT_ON_SPOT, "g5", "g6"]))
    for side in harm.sides:
        side.create(side.pod("infer"))

    harm.happens(
        "the Pod stays Pending: no instance type of the pool has capacity",
        lambda: harm.without.unscheduled("infer") and harm.without.said("NoCompatibleInstanceTypes"),
    )

    harm.prevented(
        "the NodePool gets a warning; with more families the Pod runs", lambda: harm.guarded.running("infer")
    )
    assert not harm.without.nodes()


def pool(side: Side, families: Sequence[str]) -> dict[str, Any]:
    family = {"key": FAMILY, "operator": "In", "values": list(families)}
    return side.pool(capacity=[SPOT], requirements=[family])
