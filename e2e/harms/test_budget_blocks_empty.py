"""A budget that is meant for nodes in use keeps empty ones, which are paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

TYPES = ("g5.12xlarge", "g5.24xlarge")
ALWAYS = {"nodes": "0"}
IN_USE = {"nodes": "0", "reasons": ["Underutilized", "Drifted"]}


@pytest.mark.harm("nodepools/budget-blocks-empty")
def test_an_empty_node_is_kept(harm: Harm) -> None:
    emptied(harm.without, ALWAYS)
    harm.refused(pool(harm.guarded, ALWAYS))
    emptied(harm.guarded, IN_USE)

    harm.happens(
        "Karpenter keeps the empty node, because the budget allows it to remove none",
        lambda: harm.without.said("DisruptionBlocked", "disruption reason Empty due to blocking budget"),
    )

    harm.prevented(
        "the NodePool gets a warning; with reasons [Underutilized, Drifted] Karpenter removes the empty node",
        harm.guarded.gone_nodes,
    )
    assert not harm.without.gone_nodes()
    harm.wastes(harm.without.nodes())


def emptied(side: Side, budget: dict[str, object]) -> None:
    """Give it a node whose only Pod then leaves."""
    side.create(pool(side, budget), side.pod("serve", gpus=4))
    side.until_running("serve")
    side.delete(side.pod("serve"))


def pool(side: Side, budget: dict[str, object]) -> dict[str, object]:
    when_empty = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "2s"}
    return side.pool(TYPES, disruption={**when_empty, "budgets": [budget]})
