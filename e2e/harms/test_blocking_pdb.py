"""A PodDisruptionBudget that allows no eviction keeps Karpenter from draining a node, for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harms.harm import Harm


@pytest.mark.harm("disruption/blocking-pdb")
def test_the_drain_never_ends(harm: Harm) -> None:
    for side in harm.sides:
        # Given: a node is to go, as for a new image: its NodeClaim is deleted.
        side.create(side.pool(["g5.xlarge", "g5.2xlarge"]), side.deployment("serve", 2))
        side.until_running("serve", 2)
    harm.refused(budget({"maxUnavailable": 0}), "with maxUnavailable: 1 Karpenter evicts the Pods one after the other")
    harm.without.create(budget({"maxUnavailable": 0}))
    harm.guarded.create(budget({"maxUnavailable": 1}))
    for side in harm.sides:
        side.delete(side.node_claims()[0])

    harm.guarded.until(harm.guarded.gone_nodes, "the drained node goes", 240)
    harm.happens(
        "the drain does not end: Karpenter cannot evict the Pod, and the node accepts no other Pods",
        lambda: harm.without.said("FailedDraining") or harm.without.said("Evicted", "disruption budget"),
    )
    assert len(harm.without.nodes()) == 2
    assert not harm.without.gone_nodes()
    # Nobody can use what is left of the node that drains.
    harm.wastes([node for node in harm.without.nodes() if node["spec"].get("taints", [{}])[-1].get("key") == DISRUPTED])


DISRUPTED = "karpenter.sh/disrupted"


def budget(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "serve"},
        "spec": {"selector": {"matchLabels": {"app": "serve"}}, **spec},
    }
