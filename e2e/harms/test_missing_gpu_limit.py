"""Nothing stops Karpenter when a Deployment asks for more and more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.simulated_types import GPU

from harms.side import enough

if TYPE_CHECKING:
    from harms.harm import Harm

TYPES = ("g5.xlarge", "g5.2xlarge")
WANTED = 10
LIMIT = 3


@pytest.mark.quick
@pytest.mark.harm("nodepools/missing-gpu-limit")
def test_a_runaway_deployment_gets_all_it_asks_for(harm: Harm) -> None:
    # Given: somebody meant one replica and wrote ten.
    harm.without.create(harm.without.pool(TYPES, limits={}), harm.without.deployment("serve", WANTED))
    launched = harm.happens(
        f"Karpenter launches {WANTED} GPU nodes, and nothing limits their number",
        lambda: enough(harm.without.nodes(), WANTED),
    )

    harm.refused(harm.guarded.pool(TYPES, limits={}))
    harm.guarded.create(harm.guarded.pool(TYPES, limits={GPU: str(LIMIT)}), harm.guarded.deployment("serve", WANTED))
    harm.guarded.until_running("serve", LIMIT)
    harm.prevented(
        f"the NodePool is denied; with a limit of {LIMIT} GPUs Karpenter launches no more",
        lambda: harm.guarded.said("FailedScheduling", "exceed limits"),
    )
    assert len(harm.guarded.nodes()) == LIMIT
    harm.wastes(launched[1:])
