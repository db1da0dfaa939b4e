from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.claims.hijacked_extended_resource import Params, check
from gpugate.policies.sdk.platform import Accelerators, Platform

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

OLD, NEW = "2026-10-01T08:00:00Z", "2026-11-02T08:00:00Z"
OF_VENDOR = "device.driver == 'gpu.nvidia.com'"


def device_class(name: str, created: str = "", resource: str = "nvidia.com/gpu", expression: str = OF_VENDOR) -> str:
    time = f", creationTimestamp: '{created}'" if created else ""
    return f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {name}{time}}}
spec:
  extendedResourceName: {resource}
  selectors: [{{cel: {{expression: "{expression}"}}}}]
"""


@pytest.mark.parametrize(
    ("name", "created", "other", "other_created", "reported"),
    [
        pytest.param("team", NEW, "gpu.nvidia.com", OLD, True, id="the newer one"),
        pytest.param("team", OLD, "gpu.nvidia.com", NEW, False, id="the older one"),
        pytest.param("gpu.nvidia.com", NEW, "team", OLD, True, id="the vendor's, if newer"),
        pytest.param("team", "", "gpu.nvidia.com", OLD, True, id="a class that is being created"),
        pytest.param("gpu.nvidia.com", "", "team", "", False, id="in files not the vendor's"),
        pytest.param("team", "", "gpu.nvidia.com", "", True, id="in files the other one"),
        pytest.param("a", "", "b", "", False, id="in files the first by name"),
        pytest.param("b", "", "a", "", True, id="in files the second by name"),
    ],
)
def test_of_two_classes_of_a_resource_the_newer_is_reported(
    context: Callable[..., Context[Any]],
    name: str,
    created: str,
    other: str,
    other_created: str,
    reported: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    ctx = context(
        device_class(name, created),
        facts=f"{device_class(other, other_created)}---{device_class(name, created)}",
        params=Params(),
    )
    messages = [violation.message for violation in check(ctx.subject, ctx)]
    assert messages == [f"DeviceClass {other} has the extended resource nvidia.com/gpu too"] * reported


@pytest.mark.parametrize(
    ("resource", "expression", "message"),
    [
        ("nvidia.com/gpu", "device.driver == 'gpu.nvidia.com'", ""),
        ("nvidia.com/mig-1g.10gb", "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'", ""),
        ("nvidia.com/gpu", "device.driver.endsWith('nvidia.com')", ""),
        ("aws.amazon.com/neuron", "device.driver == 'neuron.aws.com'", ""),
        ("nvidia.com/gpu", "device.driver == 'gpu.amd.com'", "may get devices of driver gpu.amd.com"),
        ("amd.com/gpu", "true", "may get devices of any driver"),
        ("example.com/npu", "device.driver == 'npu.vendor.test'", ""),
        ("example.com/nic", "true", ""),
    ],
)
def test_devices_of_another_vendor_are_reported(
    context: Callable[..., Context[Any]], resource: str, expression: str, message: str
) -> None:
    platform = Platform(accelerators=Accelerators(resources=("example.com/npu",)))
    ctx = context(device_class("team", "", resource, expression), platform=platform, params=Params())
    messages = [violation.message for violation in check(ctx.subject, ctx)]
    assert [text for text in messages if not text.endswith(message)] == []
    assert bool(messages) is bool(message)


@pytest.mark.parametrize(
    ("allowed", "reported"),
    [
        ({"nvidia.com/gpu": ("gpu.nvidia.com",)}, True),
        ({"nvidia.com/gpu": ("team", "gpu.nvidia.com")}, False),
        ({"nvidia.com/*": ("te*",)}, False),
        ({"nvidia.com/mig-*": ("mig-*",)}, False),
        ({"nvidia.com/gpu": ()}, True),
    ],
)
def test_the_platform_names_the_classes_of_a_resource(
    context: Callable[..., Context[Any]],
    allowed: dict[str, tuple[str, ...]],
    reported: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    ctx = context(device_class("team"), params=Params(allowed_classes=allowed))
    assert [v.message.startswith("nvidia.com/gpu is reserved for") for v in check(ctx.subject, ctx)] == [
        True
    ] * reported
