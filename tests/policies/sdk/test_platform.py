"""What counts as an accelerator, which taints its nodes carry, and which versions are assumed."""

from __future__ import annotations

import msgspec
import pytest

from gpugate.policies.sdk.platform import Accelerators, Platform, Taint, Target, at_least

OURS = Platform(
    accelerators=Accelerators(resources=("example.com/npu*",), device_classes=("npu.example.com",)),
    taints={
        "example.com/*": (Taint(key="any"),),
        "example.com/npu": (Taint(key="npu", value="yes"), Taint(key="second")),
        "example.com/npu-*": (Taint(key="too late"),),
        "npu.example.com": (Taint(key="claimed"),),
        "nvidia.com/gpu": (),
    },
)


@pytest.mark.parametrize(
    ("resource", "known", "ours"),
    [
        ("nvidia.com/gpu", True, True),
        ("nvidia.com/mig-1g.10gb", True, True),
        ("nvidia.com/gpu.shared", True, True),
        ("nvidia.com/gpus", False, False),
        ("nvidia.com/gpumem", True, True),
        ("nvidia.com/gpumem-percentage", True, True),
        ("nvidia.com/gpucores", True, True),
        ("nvidia.com/rdma", False, False),
        ("google.com/tpu", True, True),
        ("gpu.intel.com/i915", True, True),
        ("gpu.intel.com/xe", True, True),
        ("example.com/npu-v2", False, True),
        ("example.com/fpga", False, False),
        ("cpu", False, False),
        ("npu.example.com", False, False),
        ("deviceclass.resource.kubernetes.io/gpu.nvidia.com", True, True),
        ("deviceclass.resource.kubernetes.io/gpu.amd.com", True, True),
        ("deviceclass.resource.kubernetes.io/gpu.amd.com-spx", True, True),
        ("deviceclass.resource.kubernetes.io/nic.amd.com", False, False),
        ("deviceclass.resource.kubernetes.io/npu.example.com", False, True),
        ("deviceclass.resource.kubernetes.io/example.com/npu", False, False),
    ],
)
def test_a_resource_is_an_accelerator(resource: str, known: bool, ours: bool) -> None:  # noqa: FBT001 -- columns of the table
    assert (Platform().is_accelerator(resource), OURS.is_accelerator(resource)) == (known, ours)


@pytest.mark.parametrize(
    ("name", "known", "ours"),
    [
        ("nvidia.com/gpu", ("nvidia.com/gpu",), ()),
        ("nvidia.com/mig-1g.10gb", ("nvidia.com/gpu",), ("nvidia.com/gpu",)),
        ("deviceclass.resource.kubernetes.io/gpu.nvidia.com", ("nvidia.com/gpu",), ("nvidia.com/gpu",)),
        ("gpu.amd.com-spx", ("amd.com/gpu",), ("amd.com/gpu",)),
        ("example.com/npu", (), ("npu", "second")),
        ("example.com/npu-v2", (), ("any",)),
        ("nvidia.com/gpumem", ("nvidia.com/gpu",), ("nvidia.com/gpu",)),
        ("google.com/tpu", ("google.com/tpu",), ("google.com/tpu",)),
        ("gpu.intel.com/i915", (), ()),
        ("unknown.org/npu", (), ()),
        ("npu.example.com", (), ("claimed",)),
        ("deviceclass.resource.kubernetes.io/npu.example.com", (), ("claimed",)),
    ],
)
def test_the_nodes_of_a_resource_carry_taints(name: str, known: tuple[str, ...], ours: tuple[str, ...]) -> None:
    assert tuple(taint.key for taint in Platform().taints_of(name)) == known
    assert tuple(taint.key for taint in OURS.taints_of(name)) == ours


def test_a_taint_has_the_value_that_karpenters_manuals_give_it() -> None:
    assert Taint(key="a").value == "true"


@pytest.mark.parametrize(
    ("version", "minimum", "reached"),
    [("1.36", "1.36", True), ("1.35", "1.36", False), ("1.9", "1.10", False), ("2.0", "1.36", True)],
)
def test_versions_are_compared_as_numbers(version: str, minimum: str, reached: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert at_least(version, minimum) is reached


def test_the_newest_known_versions_are_assumed() -> None:
    assert Target() == Target(kubernetes="1.36", karpenter="1.14", keda="2.20")


@pytest.mark.parametrize("version", ["1", "1.36.1", "v1.36", "1.x", ""])
def test_a_version_is_two_numbers(version: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"kubernetes": version}, Target)


def test_classes_are_read_from_the_usual_labels_and_names() -> None:
    classes = Platform().classes
    assert classes.labels == {"workload": {"training": "training", "inference": "inference"}}
    assert classes.node_selectors == {
        "node-type": {"gpu-training": "training", "gpu-inference": "inference", "gpu-spot": "inference"}
    }
    assert classes.namespaces == {
        "ml-training*": "training",
        "ml-serving*": "inference",
        "inference*": "inference",
    }
