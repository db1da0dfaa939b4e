from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.sdk.field import Field
from gpugate.webhook.audit.inventory import Room, room_of_node, room_of_pod

MIB = 2**20


def container(cpu: str | int = "1", memory: str = "1Gi", **others: Any) -> dict[str, Any]:
    return {"name": "a", "resources": {"requests": {"cpu": cpu, "memory": memory}}, **others}


@pytest.mark.parametrize(
    ("spec", "cpu", "memory"),
    [
        pytest.param({"containers": [container(), container("250m", "100Mi")]}, 1250, 1124, id="containers-add-up"),
        pytest.param({"containers": [container()], "initContainers": [container(4)]}, 4000, 1024, id="the-largest-init-container"),
        pytest.param({"containers": [container()], "initContainers": [container(restartPolicy="Always")]}, 2000, 2048, id="sidecars-stay"),
        pytest.param(
            {"containers": [container()], "initContainers": [container(restartPolicy="Always"), container(4)]}, 5000, 2048, id="init-after-sidecar"
        ),
        pytest.param({"containers": [container()], "overhead": {"cpu": "100m", "memory": "64Mi"}}, 1100, 1088, id="overhead"),
        pytest.param(
            {"containers": [container()], "resources": {"requests": {"cpu": "8", "memory": "8Gi"}}}, 8000, 8192, id="for-the-pod-as-a-whole"
        ),
        pytest.param({"containers": [{"name": "a"}]}, 0, 0, id="nothing-reserved"),
        pytest.param({"containers": [container("lots", "much")]}, 0, 0, id="no-quantities"),
    ],
)  # fmt: skip
def test_a_pod_reserves_what_the_scheduler_counts(spec: dict[str, Any], cpu: int, memory: int) -> None:
    assert room_of_pod(Field({"spec": spec})) == Room(cpu, memory, 1)


def test_a_node_offers_what_it_lets_pods_have() -> None:
    status = {"allocatable": {"cpu": "3920m", "memory": "15073372Ki", "pods": "58"}, "capacity": {"cpu": "4"}}

    assert room_of_node(Field({"status": status})) == Room(3920, 14721, 58)


def test_of_a_node_that_says_nothing_nothing_is_known() -> None:
    assert room_of_node(Field({"status": {}})) is None


@pytest.mark.parametrize(
    ("needed", "times"),
    [(Room(1000, 1024, 1), 4), (Room(1000, 4096, 1), 1), (Room(0, 0, 1), 10), (Room(9000, 0, 1), 0), (Room(), 0)],
)  # fmt: skip
def test_what_is_scarcest_bounds_how_often_something_fits(needed: Room, times: int) -> None:
    assert Room(4000, 4096, 10).times(needed) == times
