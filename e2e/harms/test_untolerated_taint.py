"""The DaemonSet that makes GPUs usable is absent from nodes with a taint that it does not tolerate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harms.manifests import GPU_TAINT, TOLERATION

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

SPOT_TAINT = {"key": "karpenter.sh/capacity-type", "value": "spot", "effect": "NoSchedule"}
SPOT_TOLERATION = {"key": "karpenter.sh/capacity-type", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.quick
@pytest.mark.harm("nodepools/untolerated-taint")
def test_the_device_plugin_is_absent(harm: Harm) -> None:
    # Given: a device plugin tolerates the taint of GPUs, and the pool has another one beside it.
    for side in harm.sides:
        side.create(device_plugin(side))
    harm.guarded.until(
        lambda: harm.guarded.asked(pool(harm.guarded, SPOT_TAINT)).warnings, "gpugate knows the DaemonSet"
    )
    harm.refused(pool(harm.guarded, SPOT_TAINT), "without the second taint every node has its device plugin")
    harm.without.create(pool(harm.without, SPOT_TAINT))
    harm.guarded.create(pool(harm.guarded))
    for side in harm.sides:
        side.create(side.pod("infer", tolerations=[TOLERATION, SPOT_TOLERATION]))
        side.until_running("infer")

    # The DaemonSet controller has seen both nodes, and wants a Pod on one.
    assert harm.guarded.until_running("device-plugin")
    assert wanted(harm.guarded) == 1
    nodes = harm.happens(
        "the node runs no device plugin, without which a node reports no GPUs",
        lambda: wanted(harm.without) == 0 and harm.without.nodes(),
    )
    assert not harm.without.pods("device-plugin")
    harm.wastes(nodes)


def pool(side: Side, *further: dict[str, str]) -> dict[str, Any]:
    return side.pool(["g5.xlarge", "g5.2xlarge"], template={"taints": [GPU_TAINT, *further]})


def device_plugin(side: Side) -> dict[str, Any]:
    made = side.deployment("device-plugin", gpus=0)
    del made["spec"]["replicas"]
    return {**made, "kind": "DaemonSet"}


def wanted(side: Side) -> int | None:
    """On how many nodes the DaemonSet controller wants a Pod."""
    return next((one["status"].get("desiredNumberScheduled") for one in side.all("DaemonSet")), None)
