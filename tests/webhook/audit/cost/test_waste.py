from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from clusters import VLLM, costed, inventory, node, pod

from gpugate.webhook.audit.inventory import Room
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from gpugate.webhook.audit.model import Wasted

ROOM = Room(cpu=190_000, memory=2_000_000, pods=100)
SMALL = Room(cpu=8_000, memory=65_536, pods=1)
FULL = {"n1": Room(cpu=185_000, memory=500_000, pods=20)}
FIVE = [pod(1, name=f"p{number}", room=SMALL) for number in range(5)]
POOL = ObjectName("karpenter.sh/v1", "NodePool", "", "gpu")


def only(wasted: tuple[Wasted, ...]) -> Wasted:
    assert len(wasted) == 1
    return wasted[0]


def test_a_pod_with_one_gpu_keeps_a_node_with_eight() -> None:
    found = only(costed(inventory([node(gpu=8, room=ROOM)], [pod(1, room=SMALL)])).cost.wasted)

    assert found.object == POOL
    assert (found.gpus, found.usd_per_hour) == (7, pytest.approx(7 * 6.88))
    assert found.reason == (
        "Pods use at most half of the GPUs of 1 of 1 nodes of p5.48xlarge, and no pending Pod fits next to them (for "
        "example, 1 of 8 GPUs of n1 are allocated); instance type p5.4xlarge has 1 of the same GPU"
    )


def test_where_a_waiting_pod_fits_nothing_is_wasted() -> None:
    pods = [pod(1, room=SMALL), pod(4, on="", name="q", room=SMALL)]

    assert not costed(inventory([node(gpu=8, room=ROOM)], pods)).cost.wasted


def test_a_node_that_is_more_than_half_full_wastes_nothing() -> None:
    assert not costed(inventory([node(gpu=8, room=ROOM)], FIVE)).cost.wasted


def test_an_empty_node_is_idle_and_not_wasted() -> None:
    assert not costed(inventory([node(gpu=8, room=ROOM), node("n2", gpu=8)], [pod(8, on="n2", room=SMALL)])).cost.wasted


def test_gpus_for_which_no_cpu_is_left_are_wasted() -> None:
    found = only(costed(inventory([node(gpu=8, room=ROOM)], FIVE, used=FULL)).cost.wasted)

    assert found.gpus == 3
    assert found.reason == (
        "no GPU Pod of this cluster fits into the remaining capacity of 1 of 1 nodes of p5.48xlarge (for example, "
        "5 of 8 GPUs of n1 are allocated)"
    )


def test_other_pods_that_fill_an_empty_gpu_node_waste_its_gpus() -> None:
    pods = [pod(2, on="", room=SMALL)]

    found = only(costed(inventory([node(gpu=8, room=ROOM)], pods, used=FULL)).cost.wasted)

    assert found.gpus == 8


def test_gpus_that_are_too_few_for_any_pod_are_wasted() -> None:
    pods = [pod(5, room=SMALL), pod(4, on="n2", name="q", room=SMALL), pod(4, on="n2", name="r", room=SMALL)]

    found = only(costed(inventory([node(gpu=8, room=ROOM), node("n2", gpu=8, room=ROOM)], pods)).cost.wasted)

    assert found.gpus == 3


def test_what_a_mig_layout_leaves_over_is_wasted() -> None:
    found = only(costed(inventory([node(**{"nvidia.com/mig-1g.20gb": 32})])).cost.wasted)

    assert found.gpus == pytest.approx(8 - 32 / 7)
    assert "does not use all of each GPU" in found.reason


def test_nodes_of_a_pool_are_added_up() -> None:
    nodes = [node(name, gpu=8, room=ROOM) for name in ("a", "b", "c")]
    pods = [pod(1, on="a", room=SMALL), pod(2, on="b", name="q", room=SMALL), pod(8, on="c", name="r", room=SMALL)]

    found = only(costed(inventory(nodes, pods)).cost.wasted)

    assert found.gpus == 13
    assert "2 of 3 nodes of p5.48xlarge" in found.reason


def test_a_node_without_a_pool_stands_for_itself() -> None:
    found = only(costed(inventory([node(gpu=8, pool="", room=ROOM)], [pod(1, room=SMALL)])).cost.wasted)

    assert found.object == ObjectName("v1", "Node", "", "n1")
    assert found.reason.startswith("Pods use at most half of the GPUs of this node of p5.48xlarge")


def test_without_a_price_the_gpus_are_said_and_no_money() -> None:
    found = only(costed(inventory([node(instance_type="dgx", gpu=8)], [pod(1)])).cost.wasted)

    assert (found.gpus, found.usd_per_hour) == (7, None)


def test_pods_for_other_gpus_fit_nowhere_here() -> None:
    pods = [*FIVE, dataclasses.replace(pod(1, on="", name="q", room=SMALL, resource="amd.com/gpu"), owner=VLLM)]

    assert only(costed(inventory([node(gpu=8, room=ROOM)], pods, used=FULL)).cost.wasted).gpus == 3
