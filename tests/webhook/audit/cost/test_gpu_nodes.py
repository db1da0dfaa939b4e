from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from clusters import GPU, list_prices, node

from gpugate.webhook.audit.cost.gpu_nodes import gpu_node, part_of_gpu

if TYPE_CHECKING:
    from gpugate.webhook.audit.inventory import NodeRecord

MIG = "nvidia.com/mig-1g.10gb"


@pytest.mark.parametrize(
    ("record", "gpus", "offered", "model"),
    [
        pytest.param(node(gpu=8), 8, 8, "h100", id="whole-gpus"),
        pytest.param(node(gpu=7), 8, 7, "h100", id="one-gpu-is-broken"),
        pytest.param(node(), 8, 8, "h100", id="offered-by-dra-alone"),
        pytest.param(node(**{MIG: 56}), 8, 8, "h100", id="all-cut-into-sevenths"),
        pytest.param(node(**{MIG: 28, GPU: 4}), 8, 8, "h100", id="half-of-them-cut"),
        pytest.param(node(gpu=56), 8, 8, "h100", id="cut-up-without-saying-so"),
        pytest.param(
            node(gpu=56, labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}), 8, 8, "h100", id="mig-single"
        ),
        pytest.param(node(**{"nvidia.com/mig-1g.20gb": 32}), 8, Fraction(32, 7), "h100", id="layout-that-leaves-slices"),
        pytest.param(node(gpu=32, labels={"nvidia.com/gpu.replicas": "4"}), 8, 8, "h100", id="time-sliced"),
        pytest.param(node(gpu=28, labels={"nvidia.com/gpu.replicas": "4"}), 8, 7, "h100", id="time-sliced-one-broken"),
        pytest.param(node(**{"nvidia.com/gpu.shared": 32}), 8, 8, "h100", id="time-sliced-renamed"),
        pytest.param(node(instance_type="inf2.24xlarge", neuron=6, neuroncore=12), 6, 6, "inferentia2", id="neuron-has-two-names"),
        pytest.param(node(instance_type="trn2.48xlarge", neuroncore=128), 16, 16, "trainium2", id="neuron-cores-alone"),
        pytest.param(node(instance_type="g4ad.16xlarge", amd=4), 4, 4, "radeon-pro-v520", id="amd"),
        pytest.param(node(instance_type="dgx-h100", gpu=8), 8, 8, "", id="type-not-known"),
        pytest.param(
            node(instance_type="dgx-h100", gpu=32, labels={"nvidia.com/gpu.replicas": "4"}), 8, 8, "", id="not-known-and-shared"
        ),
        pytest.param(node(instance_type="g6f.xlarge", gpu=1), 1, 1, "l4", id="a-part-of-a-gpu-is-all-there-is"),
    ],
)  # fmt: skip
def test_a_node_has_as_many_gpus_as_its_type_and_offers_what_it_says(
    record: NodeRecord, gpus: int, offered: Fraction, model: str
) -> None:
    found = gpu_node(record, list_prices())

    assert found is not None
    assert (found.gpus, found.offered, found.model) == (gpus, offered, model)


def test_a_node_without_gpus_is_none() -> None:
    assert gpu_node(node(instance_type="m5.large"), list_prices()) is None


@pytest.mark.parametrize(
    ("instance_type", "offers", "usd"),
    [
        ("p5.48xlarge", {GPU: 8}, Fraction("6.88")),
        ("p5.48xlarge", {GPU: 7}, Fraction("6.88")),
        ("p5.48xlarge", {MIG: 56}, Fraction("6.88")),
        ("inf2.24xlarge", {"aws.amazon.com/neuroncore": 12}, Fraction("6.49063") / 6),
        ("p5e.48xlarge", {GPU: 8}, None),
        ("dgx-h100", {GPU: 8}, None),
        ("", {GPU: 8}, None),
    ],
)
def test_a_gpu_costs_its_part_of_the_node(instance_type: str, offers: dict[str, int], usd: Fraction | None) -> None:
    found = gpu_node(node(instance_type=instance_type, **offers), list_prices())

    assert found is not None
    assert found.usd_per_gpu == usd


@pytest.mark.parametrize(
    ("name", "instance_type", "part"),
    [
        (GPU, "", Fraction(1)),
        (MIG, "p5.48xlarge", Fraction(1, 7)),
        ("nvidia.com/mig-1g.20gb", "p5.48xlarge", Fraction(1, 7)),
        ("nvidia.com/mig-3g.40gb", "p4de.24xlarge", Fraction(3, 7)),
        ("nvidia.com/mig-1g.10gb.me", "p5.48xlarge", Fraction(1, 7)),
        ("nvidia.com/mig-1g.24gb", "g7e.48xlarge", Fraction(1, 4)),
        ("nvidia.com/mig-1g.24gb", "", Fraction(1, 7)),
        ("nvidia.com/mig-9g.1gb", "", Fraction(1, 7)),
        ("nvidia.com/gpu.shared", "", Fraction(0)),
        ("nvidia.com/gpumem", "", Fraction(0)),
        ("aws.amazon.com/neuroncore", "", Fraction(1, 2)),
        ("gpu.nvidia.com", "", Fraction(1)),
        ("mig.nvidia.com", "", Fraction(1, 7)),
        ("mig-3g.40gb.nvidia.com", "p5.48xlarge", Fraction(3, 7)),
    ],
)
def test_a_part_of_a_gpu_is_its_share_of_the_compute_slices(name: str, instance_type: str, part: Fraction) -> None:
    assert part_of_gpu(name, instance_type) == part
