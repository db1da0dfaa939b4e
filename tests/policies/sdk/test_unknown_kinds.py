from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.sdk.objects import is_known
from gpugate.policies.sdk.platform import Accelerators, Platform
from gpugate.policies.sdk.unknown_kinds import (
    CHART_INSTALLERS,
    PodContent,
    chart_values,
    find_pod_content,
    training_runtime,
)

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

PLATFORM = Platform(accelerators=Accelerators(resources=("example.com/npu",)))


def container(**limits: Json) -> dict[str, Json]:
    return {"name": "main", "image": "train:1", "resources": {"limits": limits}}


@pytest.mark.parametrize(
    ("spec", "pods", "gpus"),
    [
        ({"workers": [{"template": {"spec": {"containers": [container(cpu="1")]}}}]}, True, False),
        ({"pod": {"containers": [container(**{"nvidia.com/gpu": 1})]}}, True, True),
        ({"resources": {"nvidia.com/gpu": "4"}}, False, True),
        ({"engine": {"resources": {"requests": {"amd.com/gpu": 1}}}}, False, True),
        ({"engine": {"resources": {"limits": {"example.com/npu": 1}}}}, False, True),
        ({"engine": {"resources": {"limits": {"nvidia.com/gpu": 0}}}}, False, False),
        ({"engine": {"resources": {"limits": {"nvidia.com/gpu": "many"}}}}, False, False),
        # Quota, capacity and patterns of policies are no requests.
        ({"capability": {"nvidia.com/gpu": 8}}, False, False),
        ({"coveredResources": ["nvidia.com/gpu"]}, False, False),
        ({"containers": [{"name": "*", "image": "?*"}]}, False, False),
        # The schema of a field, not containers.
        ({"properties": {"containers": {"type": "array", "items": {"type": "object"}}}}, False, False),
        ({"containers": ["main", None, 1, {}]}, False, False),
        ({"containers": [{"name": "main"}]}, True, False),
        ({"containers": [{"image": "train:1"}]}, True, False),
        ({"containers": [{"name": "", "image": "?*"}]}, False, False),
        ({"containers": [{"name": "*", "image": "train:1"}]}, True, False),
        *(({"containers": [{"name": f"a{sign}b"}]}, False, False) for sign in "*?|!<>("),
        ({"initContainers": [{"name": "main"}]}, False, False),
        ({"resources": {"nvidia.com/gpu": ["1"]}}, False, False),
        ({"resources": {"nvidia.com/gpu": "500m"}}, False, True),
        ({"resources": {"nvidia.com/gpu": 0.5}}, False, True),
        ("a text", False, False),
    ],
)
def test_it_finds_pods_and_gpu_requests(spec: Json, *, pods: bool, gpus: bool) -> None:
    assert find_pod_content({"kind": "Train", "spec": spec}, PLATFORM) == PodContent(pods, gpus)


@pytest.mark.parametrize("key", ["metadata", "status"])
def test_metadata_and_status_request_nothing(key: str) -> None:
    assert not find_pod_content({key: {"resources": {"nvidia.com/gpu": 1}, "containers": [container()]}}, PLATFORM)


def nested(depth: int) -> dict[str, Any]:
    root: dict[str, Any] = {}
    inner = root
    for _ in range(depth):
        inner["spec"] = inner = {}
    return root


def wide(count: int) -> dict[str, Any]:
    return {"spec": {"resources": {f"k{n}": {"limits": {}} for n in range(count)}}}


@pytest.mark.parametrize("make", [nested, wide])
def test_four_times_the_object_is_four_times_the_work(make: Any) -> None:
    def cost(size: int) -> float:
        obj, least = make(size), float("inf")
        for _ in range(5):
            before = time.process_time()
            find_pod_content(obj, PLATFORM)
            least = min(least, time.process_time() - before)
        return least

    assert cost(80_000) < 10 * cost(20_000)


@pytest.mark.parametrize(
    ("group", "kind", "known"),
    [
        ("", "Pod", True),
        ("apps", "Deployment", True),
        ("karpenter.sh", "NodePool", True),
        ("kyverno.io", "ClusterPolicy", True),
        ("apiextensions.k8s.io", "CustomResourceDefinition", True),
        ("example.com", "Deployment", False),
        ("", "PodTemplate", False),
    ],
)
def test_a_kind_is_known_by_its_group_and_name(group: str, kind: str, *, known: bool) -> None:
    assert is_known(group, kind) is known


CHART: dict[str, Json] = {"chart": "a", "helm": {"valuesObject": {"a": 1}, "values": "b: 2"}}
BOTH = [({"a": 1}, "b: 2")]


@pytest.mark.parametrize(
    ("kind", "spec", "values"),
    [
        ("HelmRelease", {"chart": {"spec": {}}, "values": {"a": 1}}, [({"a": 1},)]),
        ("HelmRelease", {"chartRef": {"name": "a"}, "values": {"a": 1}}, [({"a": 1},)]),
        ("HelmRelease", {"values": {"a": 1}}, []),
        ("HelmChart", {"chart": "a", "values": {"a": 1}, "valuesContent": "b: 2"}, BOTH),
        ("HelmChart", {"chartContent": "a", "valuesContent": "b: 2"}, [(None, "b: 2")]),
        ("HelmChart", {"valuesContent": "b: 2"}, []),
        ("Application", {"source": CHART}, BOTH),
        ("Application", {"source": {"helm": CHART["helm"]}}, BOTH),
        ("Application", {"sources": [CHART, {"path": "a"}, CHART]}, BOTH * 2),
        ("Application", {"source": {"path": "a"}}, []),
        ("ApplicationSet", {"template": {"spec": {"source": CHART}}}, BOTH),
        ("ApplicationSet", {"template": {"spec": {"sources": [CHART]}}}, BOTH),
        ("Application", {}, []),
    ],
)
def test_a_chart_installer_has_the_values_of_each_chart(kind: str, spec: Json, values: list[tuple[Json, ...]]) -> None:
    (group,) = (group for group, installer in CHART_INSTALLERS if installer == kind)
    assert [tuple(each.value for each in found) for found in chart_values(group, {"spec": spec})] == values
    assert list(chart_values(group, None)) == []


def test_the_chart_installers_are_those_of_argo_cd_flux_and_k3s() -> None:
    assert set(CHART_INSTALLERS) == {
        ("argoproj.io", "Application"),
        ("argoproj.io", "ApplicationSet"),
        ("helm.cattle.io", "HelmChart"),
        ("helm.toolkit.fluxcd.io", "HelmRelease"),
    }


@pytest.mark.parametrize(
    ("obj", "runtime"),
    [
        ({"spec": {"runtimeRef": {"name": "torch"}}}, ("ClusterTrainingRuntime", "torch")),
        ({"spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": "own"}}}, ("TrainingRuntime", "own")),
        ({"spec": {}}, ("ClusterTrainingRuntime", "")),
        (None, ("ClusterTrainingRuntime", "")),
    ],
)
def test_a_train_job_names_its_runtime(obj: dict[str, Json] | None, runtime: tuple[str, str]) -> None:
    assert training_runtime(obj) == runtime
