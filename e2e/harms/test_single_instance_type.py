"""A pool of one instance type has no node to offer when EC2 runs out of that type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.simulated_types import SHORT_ON_DEMAND

if TYPE_CHECKING:
    from harms.harm import Harm

NEXT = "g6.4xlarge"


@pytest.mark.quick
@pytest.mark.harm("nodepools/single-instance-type")
def test_no_capacity_for_the_one_type(harm: Harm) -> None:
    # Given: EC2 has no capacity for the one type that the pool allows.
    harm.without.create(harm.without.pool([SHORT_ON_DEMAND]), harm.without.pod("serve"))
    harm.happens(
        f"the Pod stays Pending: no {SHORT_ON_DEMAND} is available, and the pool allows no other type",
        lambda: harm.without.unscheduled("serve") and harm.without.said("NoCompatibleInstanceTypes"),
    )

    harm.refused(harm.guarded.pool([SHORT_ON_DEMAND]))
    harm.guarded.create(harm.guarded.pool([SHORT_ON_DEMAND, NEXT]), harm.guarded.pod("serve"))
    harm.prevented(
        "the NodePool is denied; with a second type the Pod runs on that type", lambda: harm.guarded.running("serve")
    )
    assert {node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in harm.guarded.nodes()} == {NEXT}
    assert not harm.without.node_claims()
