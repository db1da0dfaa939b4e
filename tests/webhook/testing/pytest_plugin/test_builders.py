from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.testing.pytest_plugin import builders
from gpugate.webhook.testing.pytest_plugin.reviewing import Reviewer
from gpugate.webhook.testing.setup import Setup

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.testing.pytest_plugin.builders import Object

MADE: dict[str, tuple[Callable[..., Object], dict[str, Any]]] = {
    "a pool": (builders.node_pool, {}),
    "a pool of two capacity types": (builders.node_pool, {"capacity": ["spot", "on-demand"]}),
    "a Pod": (builders.gpu_pod, {}),
    "a Pod with more": (builders.gpu_pod, {"gpus": 8, "labels": {"app": "a"}}),
    "a scaler": (builders.scaled_object, {}),
    "a template of claims": (builders.resource_claim_template, {}),
}


@pytest.mark.parametrize(("build", "arguments"), MADE.values(), ids=MADE)
def test_there_is_nothing_to_find_in_it(build: Callable[..., Object], arguments: dict[str, Any]) -> None:
    found = Reviewer(Setup(), []).review(build(**arguments))

    assert found.located == (), found.report


@pytest.mark.parametrize("build", [builders.node_pool, builders.gpu_pod], ids=["a pool", "a Pod"])
def test_a_patch_comes_last_and_null_removes(build: Callable[..., Object]) -> None:
    made = build("named", patch={"metadata": {"labels": {"a": "b"}, "namespace": None}, "spec": None})

    assert made["metadata"] | {"labels": {}} == {"name": "named", "labels": {}}
    assert made["metadata"]["labels"]["a"] == "b"
    assert "spec" not in made


def test_two_of_them_share_nothing() -> None:
    one, other = builders.gpu_pod(), builders.gpu_pod()

    one["spec"]["tolerations"][0]["key"] = "changed"

    assert other["spec"]["tolerations"][0]["key"] == "nvidia.com/gpu"


def test_selectors_of_a_claim() -> None:
    expression = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"

    made = builders.resource_claim_template(device_class="mig.nvidia.com", selectors=[expression])

    (request,) = made["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["selectors"] == [{"cel": {"expression": expression}}]
