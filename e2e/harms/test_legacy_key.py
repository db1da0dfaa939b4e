"""Karpenter v1 does not read `karpenter.sh/do-not-evict`: a Pod that has it is evicted like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harms.manifests import CONSOLIDATES, DO_NOT_DISRUPT

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side


@pytest.mark.harm("nodepools/legacy-key")
def test_do_not_evict_protects_nothing(harm: Harm) -> None:
    keys = {harm.without: "karpenter.sh/do-not-evict", harm.guarded: DO_NOT_DISRUPT}
    harm.refused(annotated(harm.guarded, keys[harm.without]))
    for side in harm.sides:
        # Given: a Pod with what its author takes for protection shares a node with a neighbour, who then leaves.
        side.create(side.pool(["g5.xlarge", "g5.12xlarge"], disruption=CONSOLIDATES))
        side.create(side.deployment("neighbour", gpus=3))
        side.until_running("neighbour")
        side.create(annotated(side, keys[side]))
        side.until_running("serve")
        side.scale(side.deployment("neighbour"), 0)

    harm.happens("Karpenter evicts the Pod despite the old annotation", lambda: harm.without.ended("serve"))

    harm.prevented(
        "the Pod gets a warning; with karpenter.sh/do-not-disrupt, which the warning names, it is not evicted",
        lambda: harm.guarded.said("DisruptionBlocked", "do-not-disrupt"),
    )
    assert not harm.guarded.ended("serve")


def annotated(side: Side, key: str) -> dict[str, Any]:
    return side.deployment("serve", annotations={key: "true"})
