"""With `consolidateAfter: Never`, GPU nodes that nobody uses stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harms.manifests import EMPTY_GOES

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side


@pytest.mark.harm("nodepools/consolidation-disabled")
def test_an_idle_node_stays(harm: Harm) -> None:
    harm.refused(never(harm.guarded), "with consolidateAfter: 2s Karpenter removes the empty node")
    harm.without.create(never(harm.without))
    harm.guarded.create(harm.guarded.pool(["g5.xlarge", "g5.2xlarge"], disruption=EMPTY_GOES))
    for side in harm.sides:
        # Given: the only Pod of the node has ended.
        side.create(side.pod("infer"))
        side.until_running("infer")
        side.delete(side.pod("infer"))

    harm.guarded.until(harm.guarded.gone_nodes, "the empty node goes", 180)
    nodes = harm.happens("the node stays after its Pod has ended, although no Pod runs on it", harm.without.nodes)
    assert not harm.without.gone_nodes()
    assert not harm.without.running()
    harm.wastes(nodes)


def never(side: Side) -> dict[str, Any]:
    return side.pool(["g5.xlarge", "g5.2xlarge"], disruption={**EMPTY_GOES, "consolidateAfter": "Never"})
