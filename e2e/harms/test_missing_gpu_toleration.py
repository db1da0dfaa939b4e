"""A GPU Pod that tolerates nothing is never scheduled, and Karpenter makes no node for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harms.harm import Harm


@pytest.mark.quick
@pytest.mark.harm("pods/missing-gpu-toleration")
def test_karpenter_launches_nothing(harm: Harm) -> None:
    for side in harm.sides:
        # Given: a pool with the usual taint, and a Pod that asks for a GPU and says no more.
        side.create(side.pool(["g5.xlarge", "g5.2xlarge"]), side.pod("serve", tolerations=()))

    harm.happens(
        "the Pod stays Pending: it does not tolerate the taint of GPU nodes, so Karpenter launches no node",
        lambda: harm.without.unscheduled("serve") and harm.without.said("FailedScheduling", "did not tolerate taint"),
    )

    harm.prevented("gpugate adds the toleration, and the Pod runs", lambda: harm.guarded.running("serve"))
    assert harm.guarded.node_claims()
    assert not harm.without.node_claims()
