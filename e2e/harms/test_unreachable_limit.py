"""Karpenter launches no node from a NodePool whose limit is below one node of its smallest instance type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.simulated_types import GPU

if TYPE_CHECKING:
    from harms.harm import Harm

# Each has four GPUs.
TYPES = ("g5.12xlarge", "g5.24xlarge")
BELOW_ONE_NODE, ONE_NODE = "2", "4"


@pytest.mark.quick
@pytest.mark.harm("nodepools/unreachable-limit")
def test_no_type_fits_into_the_limit(harm: Harm) -> None:
    # Given: a Pod that needs no more GPUs than the limit allows.
    low = {GPU: BELOW_ONE_NODE}
    harm.without.create(harm.without.pool(TYPES, limits=low), harm.without.pod("infer", gpus=2))
    harm.happens(
        f"the Pod stays Pending: a limit of {BELOW_ONE_NODE} GPUs excludes all types of the NodePool, which have {ONE_NODE}",
        lambda: (
            harm.without.unscheduled("infer")
            and harm.without.said("FailedScheduling", "all available instance types exceed limits for nodepool")
        ),
    )

    harm.refused(harm.guarded.pool(TYPES, limits=low), f"with a limit of {ONE_NODE} GPUs the Pod runs")
    harm.guarded.create(
        harm.guarded.pool(TYPES, limits={GPU: ONE_NODE}),
        harm.guarded.pod("infer", gpus=2),
    )
    assert harm.guarded.until_running("infer")
    assert not harm.without.node_claims()
