"""Karpenter ignores a NodePool whose node class does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

TYPES = ("g5.xlarge", "g5.2xlarge")
ABSENT = "absent"


@pytest.mark.quick
@pytest.mark.harm("nodepools/dangling-node-class")
def test_a_pool_without_its_node_class_is_not_ready(harm: Harm) -> None:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": ABSENT}
    harm.without.create(harm.without.pool(TYPES), harm.without.pod("infer"), node_class=ABSENT)
    harm.happens(
        "the Pod stays Pending: the NodePool is not ready, and Karpenter launches no node from it",
        lambda: harm.without.unscheduled("infer") and "NodeClassNotFound" in not_ready(harm.without),
    )

    harm.refused(
        harm.guarded.pool(TYPES, template={"nodeClassRef": reference}),
        "the Pod runs on a node of a pool whose node class exists",
    )
    harm.guarded.create(harm.guarded.pool(TYPES), harm.guarded.pod("infer"))
    assert harm.guarded.until_running("infer")
    assert not harm.without.node_claims()


def not_ready(side: Side) -> list[str]:
    """Return why the pools of a side are not ready."""
    conditions: list[dict[str, Any]] = [
        condition for pool in side.pools() for condition in pool.get("status", {}).get("conditions", ())
    ]
    return [condition["reason"] for condition in conditions if condition["status"] == "False"]
