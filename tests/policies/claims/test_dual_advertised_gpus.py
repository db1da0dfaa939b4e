from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.claims.dual_advertised_gpus import check

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

CLASS = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu.nvidia.com}}"


def node(name: str, offered: str = "nvidia.com/gpu: '8'", labels: str = "") -> str:
    return f"""
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{{labels}}}}}
status: {{allocatable: {{cpu: '96', memory: 1Ti, {offered}}}}}
"""


def gpus(node_name: str, count: int = 8, driver: str = "gpu.nvidia.com", attributes: str = "") -> str:
    devices = ", ".join(f"{{name: gpu-{i}, attributes: {{{attributes}}}}}" for i in range(count))
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: {node_name}-{driver}}}
spec: {{driver: {driver}, nodeName: {node_name}, pool: {{name: {node_name}, generation: 1}}, devices: [{devices}]}}
"""


@pytest.mark.parametrize(
    ("nodes", "slices", "message"),
    [
        pytest.param([node("a")], [gpus("a")], "of node a", id="both"),
        pytest.param([node("a")], [gpus("b")], "", id="on different nodes"),
        pytest.param([node("a", "nvidia.com/gpu: '0'")], [gpus("a")], "", id="the plugin offers none"),
        pytest.param([node("a")], [gpus("a", driver="compute-domain.nvidia.com")], "", id="domains only"),
        pytest.param([node("a", "amd.com/gpu: '8'")], [gpus("a")], "", id="another vendor"),
        pytest.param([node("a", "nvidia.com/mig-1g.10gb: '7'")], [gpus("a")], "of node a", id="slices of the plugin"),
        pytest.param(
            [node("a", labels="nvidia.com/gpu.count: '16'")], [gpus("a")], "", id="as many as both offer together"
        ),
        pytest.param(
            [node("a", "nvidia.com/gpu: '32'", "nvidia.com/gpu.count: '8', nvidia.com/gpu.replicas: '4'")],
            [gpus("a")],
            "of node a",
            id="time-slicing",
        ),
        pytest.param(
            [node("a", "nvidia.com/gpu: '16'", "nvidia.com/gpu.count: '8', nvidia.com/gpu.replicas: '4'")],
            [gpus("a", 4)],
            "",
            id="time-slicing of the other GPUs",
        ),
        pytest.param(
            [node(name) for name in "edcba"], [gpus(name) for name in "abcde"], "of nodes a, b, c and 2 more", id="five"
        ),
        pytest.param(
            [node("a", labels="nvidia.com/gpu.count: '8'")],
            [gpus("a", 7, attributes="profile: {string: 1g.10gb}")],
            "of node a",
            id="slices of the driver",
        ),
    ],
)
def test_nodes_whose_gpus_both_offer_are_named(
    context: Callable[..., Context[Any]], nodes: list[str], slices: list[str], message: str
) -> None:
    ctx = context(CLASS, facts="---".join([*nodes, *slices]), complete=True)
    texts = [violation.message for violation in check(ctx.subject, ctx)]
    expected = [f"a device plugin and the DRA driver gpu.nvidia.com both offer GPUs {message}"] if message else []
    assert texts == expected
