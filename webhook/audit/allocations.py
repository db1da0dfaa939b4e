"""The devices that the scheduler gave to ResourceClaims.

Sources: `kubernetes/api` v0.36 `resource/v1` types (status of a claim); NVIDIA DRA driver v0.4.1 (names of devices: a whole
GPU is `gpu-0`, a MIG slice `gpu-0-mig-1g10gb-19-0`, in older versions `gpu-0-mig-19-0-1`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import Platform

from gpugate.policies.sdk.gpu_demand import alternatives, claim_spec_of, device_requests

# `k8s.io/api` resource/v1 types.go, ExtendedResourceClaimAnnotation, v0.36.
_OF_EXTENDED_RESOURCE: Final = "resource.kubernetes.io/extended-resource-claim"


@dataclass(frozen=True, slots=True)
class Device:
    """A device: the driver that offers it, the pool (with most drivers its node) and its name there; and its class."""

    driver: str
    pool: str
    name: str
    device_class: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Allocation:
    """The accelerators that one claim was given, and the names of the Pods that it is reserved for."""

    namespace: str
    claim: str
    pods: tuple[str, ...]
    devices: tuple[Device, ...]


def allocation_of(claim: Field, platform: Platform) -> Allocation | None:
    """Read the status of a ResourceClaim; None where it was given no accelerator.

    What was given for administration is left out, because it takes nothing from those who hold the device. So is what the
    scheduler itself claimed for an extended resource of a Pod, which counts as that resource already.
    """
    if claim["metadata", "annotations"].labels.get(_OF_EXTENDED_RESOURCE) == "true":
        return None
    classes = _classes(claim)
    devices = []
    for result in claim["status", "allocation", "devices", "results"]:
        # `gpu/large` is the alternative `large` of the request `gpu`.
        named = classes.get(result["request"].text) or ""
        driver = result["driver"].text
        is_accelerator = platform.is_accelerator_class(named or driver)
        if is_accelerator and result["adminAccess"].value is not True:
            devices.append(Device(driver, result["pool"].text, result["device"].text, named))
    if not devices:
        return None
    users = (user["name"].text for user in claim["status", "reservedFor"] if user["resource"].text in {"", "pods"})
    metadata = claim["metadata"]
    return Allocation(metadata["namespace"].text, metadata["name"].text, tuple(users), tuple(devices))


def _classes(claim: Field) -> dict[str, str]:
    """Return the device class of each request, and of each alternative as `request/alternative`."""
    classes: dict[str, str] = {}
    for request in device_requests(claim_spec_of(claim, "ResourceClaim")):
        name = request["name"].text
        for ask in alternatives(request):
            key = f"{name}/{ask['name'].text}" if ask["name"] and ask.path != request.path else name
            classes[key] = ask["deviceClassName"].text
    return classes
