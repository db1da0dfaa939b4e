"""Which vendor the devices of a DeviceClass and the extended resources of nodes are of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.gpu_demand import readable_cel

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field

# The domain of a vendor's drivers, if it differs from that of its resources.
_DRIVER_DOMAINS: Final = {"aws.amazon.com": "aws.com", "gpu.intel.com": "intel.com", "habana.ai": "intel.com"}

_KNOWN: Final = frozenset({*_DRIVER_DOMAINS, "amd.com", "google.com", "nvidia.com"})


def is_of_known_vendor(resource: str) -> bool:
    """Tell whether the domain of the vendor's drivers is known."""
    return resource.partition("/")[0] in _KNOWN


def driver_domain(resource: str) -> str:
    """Return the domain of the DRA drivers of the vendor of an extended resource, such as nvidia.com."""
    domain = resource.partition("/")[0]
    return _DRIVER_DOMAINS.get(domain, domain)


def is_of_vendor(driver: str, resource: str) -> bool:
    """Tell whether a driver belongs to the vendor of an extended resource, such as gpu.nvidia.com to nvidia.com/gpu."""
    domain = driver_domain(resource)
    return driver == domain or driver.endswith(f".{domain}")


def mentions_vendor(device_class: Field, resource: str) -> bool:
    """Tell whether a selector of a class names a resource's vendor, as driver or as the domain of an attribute."""
    domain = driver_domain(resource)
    selectors = device_class["spec", "selectors"]
    return any(domain in readable_cel(selector["cel", "expression"]) for selector in selectors)
