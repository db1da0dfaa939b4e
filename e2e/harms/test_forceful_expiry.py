"""Nodes of a training pool that reach their `expireAfter` end, or hold up, what runs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harms.manifests import DO_NOT_DISRUPT

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

EXPIRES = {"expireAfter": "40s"}
DRAINS = {**EXPIRES, "terminationGracePeriod": "20s"}
PROTECTED = {DO_NOT_DISRUPT: "true"}
DISRUPTED = "karpenter.sh/disrupted"
STAYS = "with expireAfter: Never the run continues"


@pytest.mark.quick
@pytest.mark.harm("nodepools/forceful-expiry")
def test_an_expired_node_ends_a_plain_pod(harm: Harm) -> None:
    given(harm, EXPIRES, {})

    harm.happens(
        "the node expires, and Karpenter evicts the run, despite the disruption budgets",
        lambda: harm.without.ended("run"),
    )

    goes_on(harm)


@pytest.mark.harm("nodepools/forceful-expiry")
def test_an_expired_node_is_not_drained_of_a_protected_pod(harm: Harm) -> None:
    given(harm, EXPIRES, PROTECTED)

    harm.happens(
        "the node expires and accepts no other Pods, but is not drained while the protected run is on it",
        lambda: [node for node in harm.without.nodes() if DISRUPTED in taints(node)],
    )

    assert harm.without.running("run")
    goes_on(harm)
    assert all(DISRUPTED not in taints(node) for node in harm.guarded.nodes())


@pytest.mark.harm("nodepools/forceful-expiry")
def test_a_grace_period_ends_a_protected_pod_too(harm: Harm) -> None:
    given(harm, DRAINS, PROTECTED)

    harm.happens(
        "the node expires, and after its terminationGracePeriod even the protected run is ended",
        lambda: harm.without.ended("run"),
    )

    goes_on(harm)


def given(harm: Harm, expiry: dict[str, str], annotations: dict[str, str]) -> None:
    harm.refused(pool(harm.guarded, expiry), STAYS)
    harm.without.create(pool(harm.without, expiry))
    harm.guarded.create(pool(harm.guarded, {}))
    for side in harm.sides:
        side.create(side.deployment("run", workload="batch", annotations=annotations))
        side.until_running("run")


def goes_on(harm: Harm) -> None:
    """Where nodes do not expire, it runs; it began before the other one ended."""
    assert harm.guarded.running("run")
    assert not harm.guarded.ended("run")
    assert {claim["spec"]["expireAfter"] for claim in harm.guarded.node_claims()} == {"Never"}


def pool(side: Side, expiry: dict[str, str]) -> dict[str, Any]:
    return side.pool(["g5.xlarge", "g5.2xlarge"], workload="training", template=expiry)


def taints(node: dict[str, Any]) -> set[str]:
    return {taint["key"] for taint in node["spec"].get("taints", ())}
