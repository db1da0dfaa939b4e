from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.sdk.catalogue import Catalogue, Devices, InstanceType
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.node_types import NodeTypes, node_types
from gpugate.policies.sdk.platform import Platform

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}
TYPE = "node.kubernetes.io/instance-type"


def node(name: str, labels: dict[str, Json] | None = None, *, allocatable: Json = None, **capacity: Json) -> Field:
    amounts = {"cpu": "192", "memory": "2113405280Ki", **capacity}
    obj: Json = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"capacity": amounts, "allocatable": allocatable or amounts},
    }
    return Field(obj)


def gpus(name: str, count: Json, labels: dict[str, Json] | None = None, **capacity: Json) -> Field:
    return node(name, H100 | (labels or {}), **{"nvidia.com/gpu": count, **capacity})  # type: ignore[arg-type] # amounts


def resource_slice(node_name: str, devices: int, generation: int = 1, **attributes: str) -> Field:
    product = {"productName": {"string": "NVIDIA H100 80GB HBM3"}} | {k: {"string": v} for k, v in attributes.items()}
    device: Json = {"name": "gpu", "attributes": product, "capacity": {"memory": {"value": "80Gi"}}}
    pool: Json = {"name": node_name, "generation": generation, "resourceSliceCount": 1}
    return Field(
        {"spec": {"driver": "gpu.nvidia.com", "nodeName": node_name, "pool": pool, "devices": [device] * devices}}
    )


def read(nodes: list[Field], slices: list[Field] | None = None, *listed: InstanceType) -> NodeTypes:
    return node_types(nodes, slices or [], Platform(catalogue=Catalogue(from_nodes=True, types=listed)))


def test_a_type_has_the_labels_of_all_its_nodes_and_the_most_that_one_of_them_has() -> None:
    broken = {"cpu": "191500m", "memory": "2100Gi", "nvidia.com/gpu": "7"}
    nodes = [
        gpus("a", "8", memory="2113405280Ki"),
        gpus("b", "8", {"nvidia.com/gpu.machine": "DGX"}, allocatable=broken),
    ]
    (entry,) = read(nodes).types
    assert entry == InstanceType(
        name="8x-nvidia-h100-80gb-hbm3-192cpu-2016gib",
        nodes=2,
        labels=H100,
        capacity={"cpu": 192, "memory": "2063873Mi"},
        allocatable={"cpu": 192, "memory": "2150400Mi", "nvidia.com/gpu": 8},
    )


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        pytest.param([node("a", {TYPE: "n1"}), node("b", {TYPE: "n1"})], ["n1"], id="one label, one shape"),
        pytest.param(
            [node("a", {TYPE: "k3s"}), gpus("b", 8, {TYPE: "k3s"})],
            ["k3s-192cpu-2016gib", "k3s-8x-nvidia-h100-80gb-hbm3-192cpu-2016gib"],
            id="one label, two shapes",
        ),
        pytest.param([node("a"), node("b", memory="2113405276Ki")], ["192cpu-2016gib"], id="firmware"),
        pytest.param([node("a"), node("b", memory="1Ti")], ["192cpu-1024gib", "192cpu-2016gib"], id="memory"),
        pytest.param([node("a"), node("b", cpu="96")], ["192cpu-2016gib", "96cpu-2016gib"], id="cpu"),
        pytest.param(
            [gpus("a", 7), gpus("b", 7, {"nvidia.com/mig.strategy": "mixed"}, **{"nvidia.com/mig-1g.10gb": 7})],
            ["7x-nvidia-h100-80gb-hbm3-192cpu-2016gib", "7x-nvidia-h100-80gb-hbm3-192cpu-2016gib-2"],
            id="slices beside whole GPUs",
        ),
        pytest.param(
            [node("a", {"kubernetes.io/arch": "arm64"}), node("b")], ["192cpu-2016gib"] * 2, id="architecture"
        ),
        pytest.param([node("a", **{"amd.com/gpu": 8})], ["8x-amd.com-gpu-192cpu-2016gib"], id="no product"),
        pytest.param([], [], id="no nodes"),
    ],
)
def test_nodes_of_one_shape_are_one_type(nodes: list[Field], names: list[str]) -> None:
    wanted = [name if names.index(name) == index else f"{name}-2" for index, name in enumerate(names)]
    assert [entry.name for entry in read(nodes).types] == wanted


def test_devices_of_dra_are_those_of_the_newest_slices_of_a_node() -> None:
    old, new = resource_slice("a", 8, generation=1), resource_slice("a", 4, generation=2)
    mig = resource_slice("a", 7, generation=2, profile="1g.10gb")
    elsewhere = Field({"spec": {"driver": "nic.example.com", "nodeName": "a", "devices": [{"name": "nic"}]}})
    (entry,) = read([node("a")], [old, new, mig, elsewhere, resource_slice("", 8)]).types
    common: dict[str, Any] = {"driver": "gpu.nvidia.com", "product": "NVIDIA H100 80GB HBM3", "memory": "81920Mi"}
    assert entry.devices == (Devices(count=4, **common), Devices(count=7, profile="1g.10gb", **common))
    assert entry.name == "4x-nvidia-h100-80gb-hbm3-7x-nvidia-h100-80gb-hbm3-192cpu-2016gib"


@pytest.mark.parametrize(
    ("nodes", "listed", "name"),
    [
        ([gpus("a", 8, {TYPE: "dgx"})], InstanceType(name="dgx", allocatable={"cpu": 1, "memory": "1Gi"}), "dgx"),
        (
            [gpus("a", 8)],
            InstanceType(
                name="ours", labels=H100, allocatable={"cpu": 192, "memory": "2113405280Ki", "nvidia.com/gpu": 8}
            ),
            "ours",
        ),
        (
            [gpus("a", 8)],
            InstanceType(name="ours", labels=H100, allocatable={"cpu": 192, "memory": "1Ti", "nvidia.com/gpu": 8}),
            "8x-nvidia-h100-80gb-hbm3-192cpu-2016gib",
        ),
    ],
    ids=["by its label", "by its shape", "other memory"],
)
def test_nodes_of_a_listed_type_have_its_name(nodes: list[Field], listed: InstanceType, name: str) -> None:
    types = read(nodes, [], listed)
    assert types.by_node == {"a": name}


@pytest.mark.parametrize(
    ("obj", "remark"),
    [
        (
            gpus("a", 4),
            "node a: label nvidia.com/gpu.count is 8, status.capacity has 4 nvidia.com/gpu",
        ),
        (
            node("a", memory="much"),
            'node a: status.capacity.memory: "much" is not a quantity: write a number such as 1 or 16Gi',
        ),
        (node("a", cpu="-4"), "node a: status.capacity.cpu: -4 is negative"),
        (node("a", cpu="0"), "node a: status.capacity contains no CPU or no memory, so the node is left out"),
        (Field({"metadata": {"name": "a"}, "status": []}), "node a: status.capacity contains no CPU or no memory"),
        (
            node("a", **{f"example.com/r{i}": "1" for i in range(80)}),  # type: ignore[arg-type] # amounts
            "node a: more than 64 resources; the others are not read",
        ),
        (
            node("a", {f"nvidia.com/gpu.l{i}": "1" for i in range(80)}),
            "node a: 80 labels of the machine, of which 64 are read",
        ),
    ],
)
def test_contradictions_are_remarks_with_their_place(obj: Field, remark: str) -> None:
    assert any(text.startswith(remark) for text in read([obj]).remarks), read([obj]).remarks


@pytest.mark.parametrize(
    "labels",
    [{"nvidia.com/gpu.replicas": "4"}, {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}],
    ids=["time-slicing", "MIG strategy single"],
)
def test_shared_gpus_do_not_contradict_their_number(labels: dict[str, Json]) -> None:
    assert read([gpus("a", 32, labels)]).remarks == ()


def test_remarks_and_types_are_bounded() -> None:
    nodes = [gpus(f"n{index}", 4, cpu=str(index + 1)) for index in range(3000)]
    types = read(nodes)
    assert len(types.types) == 2000
    assert len(types.remarks) == 21
    assert types.remarks[0] == "3,000 shapes of nodes, of which 1,000 are left out"
    assert types.remarks[-1] == "and 2,981 more remarks on nodes"
