"""Nodes whose GPUs are offered by a device plugin and by a DRA driver.

## Why is this bad?
Two Pods can get the same GPU. The device plugin offers the GPUs of a node as `nvidia.com/gpu`, and the DRA driver offers
them in ResourceSlices. The scheduler counts both separately, so it allocates one GPU to a Pod with `nvidia.com/gpu` and to
a Pod with a ResourceClaim. Both Pods then share its memory and its time, and may run out of memory.

## Instead
Use one of both on each node. To use DRA, disable the device plugin, such as with `devicePlugin.enabled: false` in the
GPU operator, or keep its DaemonSet off the nodes with a node selector. To use the device plugin, disable the GPUs of the
DRA driver; its ComputeDomains do not offer GPUs.

The policy compares nodes with ResourceSlices, so it needs those of a cluster or of a dump. It reports the DeviceClass of
the driver. If the label `nvidia.com/gpu.count` shows that a node has as many GPUs as both offer together, they are
different GPUs, and the node is not reported.

## Sources
NVIDIA GPU operator documentation "DRA Driver for NVIDIA GPUs" (a cluster has either DRA or the device plugin for GPUs);
NVIDIA/gpu-operator pull request 1541 (both enabled is an error); AMD GPU operator documentation "Device Plugin" (cannot be
enabled together with the DRA driver); NVIDIA/aicr pull request 332 (over-admission if both offer the GPUs of a node).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from gpugate.policies.claims._device_classes import is_of_vendor
from gpugate.policies.sdk.facts import Known, Need, Unavailable, derived
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import selected_drivers
from gpugate.policies.sdk.node_types import NODE_TYPE_NEEDS, devices_by_node
from gpugate.policies.sdk.objects import DEVICE_CLASS, NODE, RESOURCE_SLICE
from gpugate.policies.sdk.pod_requests import read_amounts
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_NVIDIA: Final = "nvidia.com/gpu"
_SHOWN: Final = 3
_CLASS_NEED: Final = Need(DEVICE_CLASS, ("spec.selectors",))


@validates(DEVICE_CLASS, mode=Stance.WARN, needs=(*NODE_TYPE_NEEDS, _CLASS_NEED))
def check(device_class: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report the nodes on which a class's driver and a device plugin both offer GPUs."""
    for driver in _drivers(device_class, ctx):
        nodes, slices = ctx.facts.list(NODE), ctx.facts.list(RESOURCE_SLICE)
        for fact in (nodes, slices):
            if isinstance(fact, Unavailable):
                yield Skip(fact.reason)
                return
        names = derived(nodes, _offered_twice, ctx).get(driver, ()) if isinstance(nodes, Known) else ()
        if names:
            yield _violation(device_class, driver, names)


def _violation(device_class: Field, driver: str, names: tuple[str, ...]) -> Violation:
    listed = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    nodes = f"node {listed}" if len(names) == 1 else f"nodes {listed}"
    message = f"a device plugin and the DRA driver {driver} both offer GPUs of {nodes}"
    hint = "disable the device plugin or the GPUs of the DRA driver on these nodes"
    why = "The scheduler counts both separately. Where they offer the same GPU, it can allocate the GPU to two Pods."
    return Violation(device_class["metadata", "name"].path, message, hint=hint, why=why)


def _drivers(device_class: Field, ctx: AnyContext) -> Iterator[str]:
    """Yield the drivers whose findings this class gets: it has their name, or is the first of their classes."""
    name = device_class["metadata", "name"].text
    fact = ctx.facts.list(DEVICE_CLASS)
    others = [] if isinstance(fact, Unavailable) else [(o["metadata", "name"].text, o) for o in fact.items]
    for driver in sorted(selected_drivers(device_class) | {name}):
        if not ctx.platform.is_accelerator_class(driver):
            continue
        names = {other for other, field in others if other == driver or driver in selected_drivers(field)} | {name}
        if name == (driver if driver in names else min(names)):
            yield driver


def _offered_twice(nodes: Known, ctx: AnyContext) -> dict[str, tuple[str, ...]]:
    """Return driver -> the nodes on which a device plugin offers GPUs of the same vendor."""
    slices = ctx.facts.list(RESOURCE_SLICE)
    devices = devices_by_node(slices.items if isinstance(slices, Known) else (), ctx.platform)
    by_driver: dict[str, list[str]] = {}
    for node in nodes.items:
        name = node["metadata", "name"].text
        counts: dict[str, int] = {}
        for (driver, _, profile, _), count in devices.get(name, ()):
            # A slice is part of a GPU that is counted already.
            counts[driver] = counts.get(driver, 0) + (0 if profile else count)
        for driver, count in counts.items():
            if _is_offered(node, driver, count, ctx):
                by_driver.setdefault(driver, []).append(name)
    return {driver: tuple(sorted(names)) for driver, names in by_driver.items()}


def _is_offered(node: Field, driver: str, count: int, ctx: AnyContext) -> bool:
    status = node["status"]
    offered = {
        name: math.floor(amount)
        for name, amount in read_amounts(status["allocatable"] or status["capacity"])
        if ctx.platform.is_accelerator(name) and is_of_vendor(driver, name) and amount >= 1
    }
    if not offered:
        return False
    labels = node["metadata", "labels"].labels
    owned, replicas = _number(labels.get(f"{_NVIDIA}.count", "")), _number(labels.get(f"{_NVIDIA}.replicas", "")) or 1
    is_counted = count and owned and offered.keys() == {_NVIDIA}
    return not (is_counted and math.ceil(offered[_NVIDIA] / replicas) + count <= (owned or 0))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None
