from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest
from clusters import GPU, TRAINER, VLLM, blocked, costed, inventory, list_prices, node, pod

from gpugate.policies.sdk.platform import Platform, Target
from gpugate.webhook.audit.cost.summary import cost_of
from gpugate.webhook.audit.inventory import Allocation, Device, Devices, Inventory
from gpugate.webhook.audit.model import AllocatedGpus, PoolUse

H100 = 55.04 / 8


def test_gpus_of_blocked_objects_are_at_risk() -> None:
    seen = inventory([node(gpu=8)], [pod(2), pod(3, owner=TRAINER, name="q")])

    found = costed(seen, [blocked(VLLM)])

    assert found.cost.at_risk == pytest.approx(2 * H100)
    assert found.cost.allocated == pytest.approx(5 * H100)
    assert found.cost.idle == pytest.approx(3 * H100)


def test_a_pending_pod_holds_nothing() -> None:
    assert costed(inventory([node(gpu=8)], [pod(2, on="")])).cost.allocated == 0


def test_what_an_object_holds_is_said_by_resource_and_model() -> None:
    found = costed(inventory([node(gpu=8), node("n2", "g6.xlarge", gpu=1)], [pod(2), pod(1, on="n2", name="q")]))

    assert found.allocated[VLLM] == (
        AllocatedGpus(GPU, "h100", 2.0, pytest.approx(2 * H100)),
        AllocatedGpus(GPU, "l4", 1.0, pytest.approx(0.8048)),
    )


def test_pools_count_gpus_by_pool_and_type() -> None:
    nodes = [node("a", gpu=8), node("b", gpu=8), node("c", "g6.xlarge", "", gpu=1)]

    found = costed(inventory(nodes, [pod(3, on="a"), pod(8, on="b")]))

    assert found.cost.pools == (
        PoolUse("", "g6.xlarge", 1, 1.0, 0.0, pytest.approx(0.8048)),
        PoolUse("gpu", "p5.48xlarge", 2, 16.0, 11.0, pytest.approx(110.08)),
    )


def test_gpus_without_a_price_are_counted_and_not_guessed() -> None:
    found = costed(
        inventory([node(instance_type="dgx-h100", gpu=8)], [pod(4), pod(2, on="gone", name="q")]), [blocked(VLLM)]
    )

    assert (found.cost.at_risk, found.cost.allocated, found.cost.idle) == (0, 0, 0)
    assert found.cost.unpriced_gpus == 10
    assert found.allocated[VLLM] == (AllocatedGpus(GPU, "", 6.0, None),)
    assert found.cost.pools[0].usd_per_hour is None


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (node(gpu=8, labels={"karpenter.sh/capacity-type": "spot"}), "1 of 1 GPU nodes is Spot: the on-demand price"),
        (node(gpu=8, labels={"karpenter.sh/capacity-type": "reserved"}), "1 of 1 GPU nodes is reserved capacity"),
        (node(gpu=8, labels={"topology.kubernetes.io/region": "eu-west-1"}), "there are GPU nodes in eu-west-1"),
        (node(instance_type="dgx-h100", gpu=8), "GPU nodes of dgx-h100 have no price"),
        (node(instance_type="", gpu=8), "GPU nodes of no type have no price"),
        (node(), "1 of 1 GPU nodes is without GPUs from a device plugin"),
        (node(gpu=1), "Pods use more GPUs of node n1 than it offers"),
        (node("other", gpu=8), "2 GPUs are allocated on nodes whose number of GPUs is unknown"),
    ],
)  # fmt: skip
def test_what_figures_leave_out_is_said(record: object, said: str) -> None:
    pods = [] if record == node() else [pod(2)]

    assert any(said in remark for remark in costed(inventory([record], pods)).remarks)  # type: ignore[list-item]


@pytest.mark.parametrize(("capacity", "paid"), [("spot", "0.4"), ("reserved", "0.9"), ("on-demand", "1")])
def test_a_discount_is_for_one_capacity(capacity: str, paid: str) -> None:
    seen = inventory([node(gpu=8, labels={"karpenter.sh/capacity-type": capacity})], [pod(2)])
    discounts = {"spot": Fraction("0.6"), "reserved": Fraction("0.1")}
    found = costed(seen, prices=dataclasses.replace(list_prices(), discounts=discounts))

    assert found.cost.spend == pytest.approx(float(8 * H100) * float(paid))
    assert not any("on-demand price" in remark for remark in found.remarks)


def test_pods_that_could_not_be_read_are_remarked_upon() -> None:
    seen = dataclasses.replace(inventory([node(gpu=8)]), pods_known=False)

    assert "not all Pods could be read" in costed(seen).remarks[0]


def test_without_nodes_nothing_is_said() -> None:
    assert cost_of(Inventory(), (), list_prices(), Platform(), Target()) is None


def test_a_claim_that_pods_share_counts_once() -> None:
    shared = (Devices("gpu.nvidia.com", 1, claim="gpu"),)
    pods = [pod(0, name="a", devices=shared), pod(0, name="b", devices=shared, owner=TRAINER, on="n1")]
    pods[1] = dataclasses.replace(pods[1], namespace=VLLM.namespace)

    found = costed(inventory([node()], pods))

    assert found.cost.allocated == pytest.approx(H100)
    assert found.allocated[VLLM] == (AllocatedGpus("gpu.nvidia.com", "h100", 0.5, pytest.approx(H100 / 2)),)


def test_a_claim_of_the_pods_own_counts_for_each() -> None:
    own = (Devices("gpu.nvidia.com", 2),)

    assert costed(
        inventory([node()], [pod(0, name="a", devices=own), pod(0, name="b", devices=own)])
    ).cost.allocated == pytest.approx(4 * H100)


@pytest.mark.parametrize(
    ("device", "gpus"),
    [("gpu-0", 1), ("gpu-0-mig-3g40gb-9-0", 3 / 7), ("gpu-0-mig-19-0-1", 1 / 7)],
)
def test_what_a_claim_was_given_beats_what_it_asks_for(device: str, gpus: float) -> None:
    given = Allocation("serving", "p-gpu", ("p",), (Device("gpu.nvidia.com", "n1", device, "mig.nvidia.com"),))
    asking = pod(0, devices=(Devices("mig.nvidia.com", 5),))
    whole = dataclasses.replace(given, devices=(Device("gpu.nvidia.com", "n1", device, "gpu.nvidia.com"),))

    found = costed(inventory([node()], [asking], allocations=(whole if device == "gpu-0" else given,)))

    assert found.cost.allocated == pytest.approx(gpus * H100)


def test_a_device_given_to_two_claims_counts_once() -> None:
    device = Device("gpu.nvidia.com", "n1", "gpu-0", "gpu.nvidia.com")
    given = tuple(Allocation("serving", name, (name,), (device,)) for name in ("a", "b"))
    pods = [pod(0, name=name, devices=(Devices("gpu.nvidia.com", 1),)) for name in ("a", "b")]

    assert costed(inventory([node()], pods, allocations=given)).cost.allocated == pytest.approx(H100)
