"""Karpenter launches no node for a Pod that selects a label which a node gets only after it has started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

LATE = "nvidia.com/gpu.product"
KNOWN = "karpenter.k8s.aws/instance-gpu-name"


@pytest.mark.harm("pods/late-node-label")
def test_karpenter_knows_no_node_with_the_label(harm: Harm) -> None:
    # Given: a pool of nodes with an A10G. Karpenter's AWS provider knows the second label without a requirement, too.
    for side in harm.sides:
        named = {"key": KNOWN, "operator": "In", "values": ["a10g"]}
        side.create(side.pool(["g5.xlarge", "g5.2xlarge"], requirements=[named]))
    late = selecting(harm.guarded, LATE, "NVIDIA-A10G")
    harm.guarded.until(lambda: harm.guarded.asked(late).warnings, "gpugate knows the NodePool")
    harm.without.create(selecting(harm.without, LATE, "NVIDIA-A10G"))

    harm.happens(
        f"the Pod stays Pending: Karpenter launches no node, because no NodePool has the label {LATE}",
        lambda: (
            harm.without.unscheduled("infer")
            and harm.without.said("FailedScheduling", f'label "{LATE}" does not have known values')
        ),
    )

    harm.refused(late, f"a Pod that selects {KNOWN} runs")
    harm.guarded.create(selecting(harm.guarded, KNOWN, "a10g"))
    assert harm.guarded.until_running("infer")
    assert not harm.without.node_claims()


def selecting(side: Side, label: str, value: str) -> dict[str, Any]:
    """A Pod for the nodes of this side's pool that have a label."""
    made = side.pod("infer")
    made["spec"]["nodeSelector"][label] = value
    return made
