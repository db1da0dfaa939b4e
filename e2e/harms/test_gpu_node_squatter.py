"""A Pod that tolerates the GPU taint without asking for a GPU keeps a GPU node alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harms.manifests import EMPTY_GOES

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side


@pytest.mark.quick
@pytest.mark.harm("pods/gpu-node-squatter")
def test_a_tolerating_pod_without_gpus_keeps_the_node(harm: Harm) -> None:
    for side in harm.sides:
        # Given: a GPU Pod runs, and a Pod without GPUs is to run beside it.
        side.create(side.pool(["g5.xlarge", "g5.2xlarge"], disruption=EMPTY_GOES), side.pod("infer"))
        side.until_running("infer")
    harm.without.create(squatter(harm.without))
    harm.refused(squatter(harm.guarded), "Karpenter removes the node after its GPU Pod has ended")

    harm.without.until_running("squatter")
    for side in harm.sides:
        side.delete(side.pod("infer"))
    harm.guarded.until(harm.guarded.gone_nodes, "the empty node goes", 180)
    nodes = harm.happens(
        "the GPU node stays after its GPU Pod has ended, because a Pod without a GPU runs on it",
        lambda: [node for node in harm.without.nodes() if node["metadata"]["name"] in hosts(harm.without)],
    )
    assert not harm.without.gone_nodes()
    harm.wastes(nodes)


def squatter(side: Side) -> dict[str, Any]:
    return side.pod("squatter", gpus=0)


def hosts(side: Side) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in side.running("squatter")}
