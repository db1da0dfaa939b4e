from __future__ import annotations

import pytest

from gpugate.policies.data.instance_types import INSTANCE_TYPE, InstanceTypes, Scale, load_instance_types

GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count"


@pytest.fixture(scope="module")
def catalogue() -> InstanceTypes:
    return load_instance_types()


def test_it_holds_every_type_once(catalogue: InstanceTypes) -> None:
    assert len(catalogue.names) == len(set(catalogue.names)) == len(catalogue.prices) == 1363


def test_positions_lead_back_to_names(catalogue: InstanceTypes) -> None:
    assert [catalogue.positions[name] for name in catalogue.names] == list(range(1363))


def test_83_types_have_an_accelerator(catalogue: InstanceTypes) -> None:
    assert catalogue.accelerated.bit_count() == 83


@pytest.mark.parametrize(
    ("resource", "types"),
    [
        ("cpu", 1363),
        ("memory", 1363),
        ("nvidia.com/gpu", 60),
        ("amd.com/gpu", 5),
        ("aws.amazon.com/neuron", 12),
        ("aws.amazon.com/neuroncore", 12),
        ("vpc.amazonaws.com/efa", 297),
        ("habana.ai/gaudi", 0),
    ],
)
def test_types_offer_a_resource(catalogue: InstanceTypes, resource: str, types: int) -> None:
    assert catalogue.offering(resource).bit_count() == types


@pytest.mark.parametrize(
    ("resource", "amount"),
    [("cpu", 191_450), ("memory", 1_938_410), ("nvidia.com/gpu", 8), ("vpc.amazonaws.com/efa", 32)],
)
def test_p5_offers_this_much(catalogue: InstanceTypes, resource: str, amount: int) -> None:
    scale, p5 = catalogue.allocatable[resource], catalogue.of(INSTANCE_TYPE, "p5.48xlarge")
    assert scale.at_least(amount) & p5
    assert not scale.at_least(amount + 1) & p5


@pytest.mark.parametrize(
    ("label", "value"),
    [
        (INSTANCE_TYPE, "p5.48xlarge"),
        ("karpenter.k8s.aws/instance-gpu-name", "h100"),
        ("karpenter.k8s.aws/instance-gpu-memory", "81920"),
        ("karpenter.k8s.aws/instance-family", "p5"),
        ("kubernetes.io/arch", "amd64"),
        ("karpenter.k8s.aws/instance-accelerator-name", ""),
    ],
)
def test_p5_has_the_label(catalogue: InstanceTypes, label: str, value: str) -> None:
    assert catalogue.label(label, catalogue.positions["p5.48xlarge"]) == value


def test_prices_are_by_the_hour(catalogue: InstanceTypes) -> None:
    assert catalogue.prices[catalogue.positions["p5.48xlarge"]] == 55.04


def test_a_price_may_be_unknown(catalogue: InstanceTypes) -> None:
    assert catalogue.prices[catalogue.positions["p5e.48xlarge"]] is None


def test_a_set_decodes_into_names(catalogue: InstanceTypes) -> None:
    p5_family = catalogue.of("karpenter.k8s.aws/instance-family", "p5")
    assert list(catalogue.decode(p5_family)) == ["p5.48xlarge", "p5.4xlarge"]


@pytest.mark.parametrize(("label", "types"), [(INSTANCE_TYPE, 1363), (GPU_COUNT, 70), ("nvidia.com/gpu.product", 0)])
def test_types_carry_a_label(catalogue: InstanceTypes, label: str, types: int) -> None:
    assert catalogue.having(label).bit_count() == types


@pytest.mark.parametrize(
    ("label", "narrows"),
    [(INSTANCE_TYPE, True), (GPU_COUNT, True), ("topology.kubernetes.io/zone", False), ("node-type", False)],
)
def test_a_label_narrows_types_or_not(catalogue: InstanceTypes, label: str, narrows: bool) -> None:  # noqa: FBT001 -- a column
    assert (label in catalogue) is narrows


@pytest.mark.parametrize(("label", "value"), [(INSTANCE_TYPE, "p5.96xlarge"), (GPU_COUNT, "3"), ("node-type", "gpu")])
def test_what_is_not_there_is_of_no_type(catalogue: InstanceTypes, label: str, value: str) -> None:
    assert catalogue.of(label, value) == 0


@pytest.mark.parametrize(("number", "types"), [(0, 0b111), (1, 0b111), (2, 0b110), (4, 0b110), (5, 0b100), (9, 0)])
def test_a_scale_reaches_down_to_a_number(number: int, types: int) -> None:
    assert Scale(numbers=(1, 4, 8), reach=(0b111, 0b110, 0b100)).at_least(number) == types
