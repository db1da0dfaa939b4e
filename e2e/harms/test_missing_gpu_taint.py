"""Without a taint on the nodes of a GPU pool, Pods without GPUs settle there and keep them alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harms.manifests import EMPTY_GOES

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side


@pytest.mark.harm("nodepools/missing-gpu-taint")
def test_a_cpu_pod_settles_on_the_gpu_node(harm: Harm) -> None:
    # Given: a GPU Pod runs, and a plain Pod comes for which nobody thought of GPUs.
    harm.refused(
        untainted(harm.guarded), "with the taint, the Pod without a GPU runs elsewhere, and Karpenter removes the node"
    )
    harm.without.create(untainted(harm.without))
    harm.guarded.create(harm.guarded.pool(["g5.xlarge", "g5.2xlarge"], disruption=EMPTY_GOES))
    for side in harm.sides:
        side.create(side.pod("infer"))
        side.until_running("infer")
        side.create(side.pod("plain", gpus=0, tolerations=()))
    harm.without.until_running("plain")
    harm.guarded.until(lambda: harm.guarded.unscheduled("plain"), "the plain Pod finds no node")
    for side in harm.sides:
        side.delete(side.pod("infer"))

    harm.guarded.until(harm.guarded.gone_nodes, "the empty node goes", 180)
    nodes = harm.happens(
        "a Pod without a GPU runs on the GPU node, and keeps it alive after the GPU Pod has ended",
        lambda: [node for node in harm.without.nodes() if node["metadata"]["name"] in hosts(harm.without)],
    )
    assert not harm.without.gone_nodes()
    harm.wastes(nodes)


def untainted(side: Side) -> dict[str, Any]:
    return side.pool(["g5.xlarge", "g5.2xlarge"], disruption=EMPTY_GOES, template={"taints": []})


def hosts(side: Side) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in side.running("plain")}
