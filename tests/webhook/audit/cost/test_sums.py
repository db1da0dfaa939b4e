"""What holds for the figures of any cluster."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec
import pytest
from clusters import GPU, blocked, costed, inventory, node, pod
from hypothesis import given
from hypothesis import strategies as st

from gpugate.webhook.audit.inventory import Demand
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    import random

    from gpugate.webhook.audit.inventory import GpuPod, Inventory

_MIG = "nvidia.com/mig-1g.10gb"
_OFFERS = (("p5.48xlarge", GPU, 8), ("g6.12xlarge", GPU, 4), ("p5.48xlarge", _MIG, 56), ("p5e.48xlarge", GPU, 8))
_OFFERS += (("dgx", GPU, 8), ("inf2.24xlarge", "aws.amazon.com/neuroncore", 12), ("g4ad.16xlarge", "amd.com/gpu", 4))
_OWNERS = tuple(ObjectName("apps/v1", "Deployment", "ml", name) for name in "abc")


@st.composite
def clusters(draw: st.DrawFn) -> Inventory:
    """A cluster whose Pods hold no more than there is."""
    nodes, pods = [], []
    for number, (kind, resource, count) in enumerate(draw(st.lists(st.sampled_from(_OFFERS), max_size=6))):
        nodes.append(node(f"n{number}", kind, draw(st.sampled_from(("x", "y", ""))), **{resource: count}))
        left = count
        for asked in draw(st.lists(st.integers(1, count), max_size=4)):
            if asked <= left:
                left -= asked
                owner = draw(st.sampled_from(_OWNERS))
                pods.append(pod(asked, on=f"n{number}", owner=owner, name=f"p{len(pods)}", resource=resource))
    return inventory(nodes, pods)


@given(clusters())
def test_held_and_idle_are_what_there_is(seen: Inventory) -> None:
    cost = costed(seen).cost

    priced = sum(pool.usd_per_hour or 0 for pool in cost.pools)
    assert cost.allocated + cost.idle == pytest.approx(priced)


@given(clusters())
def test_what_objects_hold_is_what_is_held(seen: Inventory) -> None:
    found = costed(seen)

    allocated = [each for of_object in found.allocated.values() for each in of_object]
    assert sum(each.usd_per_hour or 0 for each in allocated) == pytest.approx(found.cost.allocated)
    assert sum(each.gpus for each in allocated) == pytest.approx(sum(pool.allocated for pool in found.cost.pools))


@given(clusters())
def test_no_more_is_held_than_there_is(seen: Inventory) -> None:
    found = costed(seen)

    assert all(pool.allocated <= pool.gpus + 1e-9 for pool in found.cost.pools)
    assert not any("more GPUs" in remark for remark in found.remarks)


@given(clusters(), st.sets(st.sampled_from(_OWNERS)))
def test_at_risk_is_what_blocked_objects_hold(seen: Inventory, owners: set[ObjectName]) -> None:
    found = costed(seen, map(blocked, owners))

    of_blocked = [each for owner in owners for each in found.allocated.get(owner, ())]
    assert found.cost.at_risk == pytest.approx(sum(each.usd_per_hour or 0 for each in of_blocked))
    assert found.cost.at_risk <= found.cost.allocated


@given(clusters(), st.sets(st.sampled_from(_OWNERS)))
def test_what_is_at_risk_is_that_of_all_groups(seen: Inventory, owners: set[ObjectName]) -> None:
    cost = costed(seen, map(blocked, owners)).cost

    for by in ("team", "namespace"):
        assert sum(spend.at_risk for spend in cost.spending if spend.by == by) == pytest.approx(cost.at_risk)
    assert all(spend.at_risk <= (spend.usd_per_hour or 0) + 1e-9 for spend in cost.spending)


@given(clusters())
def test_everything_blocked_puts_everything_at_risk(seen: Inventory) -> None:
    cost = costed(seen, map(blocked, _OWNERS)).cost

    assert cost.at_risk == cost.allocated


@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_does_not_matter(seen: Inventory, chance: random.Random) -> None:
    nodes, pods = list(seen.nodes), list(seen.pods)
    chance.shuffle(nodes)
    chance.shuffle(pods)

    assert costed(dataclasses.replace(seen, nodes=tuple(nodes), pods=tuple(pods))) == costed(seen)


def _split(pods: tuple[GpuPod, ...]) -> tuple[GpuPod, ...]:
    """Make of each Pod one for each of its devices."""
    return tuple(
        dataclasses.replace(each, name=f"{each.name}-{part}", demand=Demand(dict.fromkeys(each.demand.resources, 1)))
        for each in pods
        for part in range(sum(each.demand.resources.values()))
    )


@given(clusters())
def test_splitting_pods_changes_no_sum(seen: Inventory) -> None:
    whole = costed(seen, [blocked(_OWNERS[0])])
    split = costed(dataclasses.replace(seen, pods=_split(seen.pods)), [blocked(_OWNERS[0])])

    assert msgspec.structs.replace(whole.cost, wasted=()) == msgspec.structs.replace(split.cost, wasted=())
    assert whole.allocated == split.allocated


@given(clusters())
def test_no_more_is_wasted_than_is_idle(seen: Inventory) -> None:
    cost = costed(seen).cost
    idle: defaultdict[str, float] = defaultdict(float)
    for pool in cost.pools:
        idle[pool.node_pool] += pool.gpus - pool.allocated

    for wasted in cost.wasted:
        if wasted.object.kind == "NodePool":
            idle[wasted.object.name] -= wasted.gpus
    assert all(left >= -1e-9 for left in idle.values())
