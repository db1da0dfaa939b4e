from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.platform import Accelerators, Platform
from gpugate.webhook.audit.inventory import Allocation, Device, allocation_of


def claim(requests: list[dict[str, Any]], *results: dict[str, Any]) -> Field:
    status = {
        "allocation": {"devices": {"results": list(results)}},
        "reservedFor": [{"resource": "pods", "name": "trainer", "uid": "1"}],
    }
    return Field(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "gpu", "namespace": "ml"},
            "spec": {"devices": {"requests": requests}},
            "status": status,
        }
    )


def result(request: str = "gpu", driver: str = "gpu.nvidia.com", **others: Any) -> dict[str, Any]:
    return {"request": request, "driver": driver, "pool": "n1", "device": "gpu-0", **others}


EXACTLY = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
INLINE = {"name": "gpu", "deviceClassName": "gpu.nvidia.com"}
EITHER = {
    "name": "gpu",
    "firstAvailable": [
        {"name": "big", "deviceClassName": "gpu.nvidia.com"},
        {"name": "small", "deviceClassName": "mig.nvidia.com"},
    ],
}


@pytest.mark.parametrize(
    ("request_", "given", "device_class"),
    [
        (EXACTLY, result(), "gpu.nvidia.com"),
        (INLINE, result(), "gpu.nvidia.com"),
        (EITHER, result("gpu/small"), "mig.nvidia.com"),
        ({"name": "other"}, result(), ""),
    ],
)
def test_what_a_claim_was_given_is_read_with_its_class(
    request_: dict[str, Any], given: dict[str, Any], device_class: str
) -> None:
    found = allocation_of(claim([request_], given), Platform())

    assert found == Allocation("ml", "gpu", ("trainer",), (Device("gpu.nvidia.com", "n1", "gpu-0"),))
    assert found is not None
    assert found.devices[0].device_class == device_class


@pytest.mark.parametrize(
    "results",
    [
        (),
        (result(adminAccess=True),),
        (result("nic", "dra.net"),),
        (result("channel", "compute-domain.nvidia.com"),),
    ],
)
def test_what_is_no_accelerator_or_takes_none_away_is_left_out(results: tuple[dict[str, Any], ...]) -> None:
    assert (
        allocation_of(claim([EXACTLY, {"name": "nic", "exactly": {"deviceClassName": "nics"}}], *results), Platform())
        is None
    )


def test_what_the_scheduler_claims_for_an_extended_resource_is_not_counted_again() -> None:
    made = claim([EXACTLY], result())
    metadata = {**made["metadata"].mapping, "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}}

    assert allocation_of(Field({**made.mapping, "metadata": metadata}), Platform()) is None


def test_classes_of_the_platforms_own_are_accelerators_too() -> None:
    own = Platform(accelerators=Accelerators(device_classes=("big-gpus",)))
    asked = {"name": "gpu", "exactly": {"deviceClassName": "big-gpus"}}

    assert allocation_of(claim([asked], result(driver="gpu.acme.dev")), own) is not None
