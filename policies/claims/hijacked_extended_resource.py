"""DeviceClass that takes over an extended resource of GPUs.

## Why is this bad?
Pods that request the resource get other devices. With `extendedResourceName: nvidia.com/gpu`, Kubernetes 1.36 allocates
devices of the class to each Pod that requests `nvidia.com/gpu` and finds no GPU of a device plugin. If several classes
have the same name, Kubernetes uses the one that was created last. A new class therefore changes every Pod of the cluster
that requests the resource.

The policy reports:

- A class for a resource of accelerators whose selectors do not restrict the devices to those of the vendor, such as a
  class without selectors for `nvidia.com/gpu`.
- A class with the same `extendedResourceName` as an older one. Where the age is not known, as in files, it reports all
  but one of them.
- A class that `allowed_classes` does not contain, if the policy file names the classes of the resource.

## Instead
Map each extended resource in one class, with a selector for the driver of the vendor:

```yaml
kind: DeviceClass
metadata:
  name: gpu.nvidia.com
spec:
  extendedResourceName: nvidia.com/gpu
  selectors:
    - cel:
        expression: device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'
```

## Sources
`kubernetes/api` v0.36 `resource/v1/types.go` (DeviceClassSpec.ExtendedResourceName: of several classes that created last,
of those created at the same time the first by name); KEP-5004 "Handle extended resource requests via DRA Driver"; NVIDIA
DRA driver v0.4.1 `deployments/helm/.../deviceclass-gpu.yaml`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpugate.policies.claims._device_classes import driver_domain, is_of_known_vendor, mentions_vendor
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.facts import Known, Need
from gpugate.policies.sdk.findings import Other, Stance, Violation
from gpugate.policies.sdk.gpu_demand import selected_drivers
from gpugate.policies.sdk.objects import DEVICE_CLASS
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which classes may give extended resources.

    Attributes:
        allowed_classes: names or patterns of DeviceClasses, by extended resource; `*` matches anything in either. The
            first matching entry applies. Without one, any class may give a resource with devices of its vendor.
    """

    allowed_classes: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


@validates(
    DEVICE_CLASS,
    params=Params,
    mode=Stance.WARN,
    needs=(Need(DEVICE_CLASS, ("metadata.creationTimestamp", "spec.extendedResourceName")),),
)
def check(device_class: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Compare a class with the vendor of its extended resource, with the allowed classes, and with other classes."""
    field = device_class["spec", "extendedResourceName"]
    resource = field.text
    if not ctx.platform.is_accelerator(resource):
        return
    allowed = next((v for k, v in ctx.params.allowed_classes.items() if formats.matches(k, resource)), None)
    name = device_class["metadata", "name"].text
    if allowed is not None and not any(formats.matches(pattern, name) for pattern in allowed):
        message = f"{resource} is reserved for the DeviceClasses {', '.join(allowed[:3]) or 'of no name'}"
        why = f"Pods that request {resource} may get devices of this class, which the policy file does not allow."
        yield Violation(field.path, message, hint="remove extendedResourceName", why=why)
    elif allowed is None and is_of_known_vendor(resource) and not mentions_vendor(device_class, resource):
        drivers = ", ".join(sorted(selected_drivers(device_class))[:3])
        devices = f"devices of driver {drivers}" if drivers else "devices of any driver"
        message = f"Pods that request {resource} may get {devices}"
        hint = (
            f"add a selector such as device.driver == 'gpu.{driver_domain(resource)}', or remove extendedResourceName"
        )
        why = f"A program that expects {resource} does not run on another device."
        yield Violation(field.path, message, hint=hint, why=why)
    else:
        yield from _beside_another(device_class, field, ctx)


def _beside_another(device_class: Field, field: Field, ctx: Context[Params]) -> Iterator[Violation]:
    fact = ctx.facts.list(DEVICE_CLASS)
    name = device_class["metadata", "name"].text
    same = [
        other
        for other in (fact.items if isinstance(fact, Known) else ())
        if other["spec", "extendedResourceName"].text == field.text and other["metadata", "name"].text != name
    ]
    is_dated = all(dated["metadata", "creationTimestamp"].text for dated in (device_class, *same))
    oldest = min((device_class, *same), key=lambda other: _age(other, field.text, is_dated=is_dated))
    if oldest is device_class:
        return
    other_name = oldest["metadata", "name"].text
    message = f"DeviceClass {other_name} has the extended resource {field.text} too"
    hint = "remove extendedResourceName from one of the classes"
    why = f"Kubernetes uses the class that was created last for all Pods that request {field.text}."
    yield Violation(field.path, message, hint=hint, why=why, others=(Other("DeviceClass", "", other_name),))


def _age(device_class: Field, resource: str, *, is_dated: bool) -> tuple[str, bool, str]:
    """Return the sort key of a class: its time of creation if all have one, then whether it has the vendor's name."""
    name = device_class["metadata", "name"].text
    created = device_class["metadata", "creationTimestamp"].text if is_dated else ""
    return created, not name.endswith(driver_domain(resource)), name
