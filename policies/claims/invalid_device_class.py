"""DeviceClass name that is invalid or does not exist.

## Why is this bad?
The API server refuses a claim for `nvidia.com/mig-1g.10gb`. That is the name of an extended resource, and the name of
a DeviceClass is a DNS subdomain, which contains no slash. The API server accepts a claim for a class that does not
exist, but its Pod stays Pending; this is a warning.

## Instead
Name the class and select the slice by its profile:

```yaml
exactly:
  deviceClassName: mig.nvidia.com
  selectors:
    - cel:
        expression: device.attributes['gpu.nvidia.com'].profile == '1g.10gb'
```

## Sources
Kubernetes v1.36 `pkg/apis/resource/validation/validation.go` (validateDeviceClassName); NVIDIA DRA driver v0.4.1
`deployments/helm/dra-driver-nvidia-gpu/templates` (its classes and the attribute `profile`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.claims._written import written_requests
from gpugate.policies.data import mig_profiles
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.facts import Fact, Known, Need, object_doubt
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import alternatives
from gpugate.policies.sdk.objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_SHOWN: Final = 80  # characters of a name in a message; names may have any length
_GPU: Final = "nvidia.com/gpu"
_REFUSED: Final = (
    "The API server refuses the object: the name of a DeviceClass must be a DNS subdomain, without a slash."
)
_UNALLOCATED: Final = "No device can be allocated for the claim, so its Pod stays Pending."


@validates(DEVICE_CLASS)
def check_class(device_class: Field, ctx: AnyContext) -> Iterator[Violation]:  # noqa: ARG001 -- the signature of policies
    """Report an invalid name."""
    metadata = device_class["metadata"]
    name = metadata["name"] or metadata["generateName"]
    # A name that the API server generates ends in letters and digits.
    whole = name.text if metadata["name"] else f"{name.text}x"
    if name and not formats.is_subdomain(whole):
        yield Violation(
            name.path, _message(name.text), hint="use lower-case letters, digits, hyphens and dots", why=_REFUSED
        )


@validates(RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, needs=(Need(DEVICE_CLASS, ()),))
def check_claim(claim: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report requested classes with invalid names, and those that do not exist."""
    fact = ctx.facts.list(DEVICE_CLASS)
    for request in written_requests(claim, ctx):
        for ask in alternatives(request):
            name = ask["deviceClassName"]
            if name.text and not formats.is_subdomain(name.text):
                yield _misnamed(ask, name)
            elif name.text:
                yield from _unknown(name, fact)


def _message(name: str) -> str:
    if "/" in name:
        return f'"{name[:_SHOWN]}" is the name of an extended resource, not of a DeviceClass'
    return f'"{name[:_SHOWN]}" is not a valid DeviceClass name (a DNS subdomain)'


def _misnamed(ask: Field, name: Field) -> Violation:
    reason = "names the DeviceClass of these devices"
    profile = mig_profiles.profile_of(name.text)
    profile = profile and (mig_profiles.near_miss(profile) or profile)
    if profile and mig_profiles.gpus_with(profile):
        by_profile = f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"
        fix = Patches(
            (
                Patch("set", name.path, "mig.nvidia.com", reason),
                Patch("append", ask["selectors"].path, {"cel": {"expression": by_profile}}, reason),
            ),
        )
        hint = f"use mig.nvidia.com with a CEL selector on profile '{profile}'"
        return Violation(name.path, _message(name.text), hint=hint, fix=fix, why=_REFUSED)
    if name.text == _GPU:
        gpu = Patches((Patch("set", name.path, "gpu.nvidia.com", reason),))
        return Violation(name.path, _message(name.text), hint="use gpu.nvidia.com", fix=gpu, why=_REFUSED)
    hint = "name a DeviceClass that `kubectl get deviceclasses` lists"
    return Violation(name.path, _message(name.text), hint=hint, why=_REFUSED)


def _unknown(name: Field, fact: Fact) -> Iterator[Violation | Skip]:
    doubt = object_doubt(fact, DEVICE_CLASS, name.text)
    if doubt:
        yield doubt
    elif isinstance(fact, Known) and name.text not in fact.by_name:
        known = ", ".join(sorted(fact.by_name)[:5])
        message = f"DeviceClass {name.text[:_SHOWN]} does not exist"
        hint = f"use one of these: {known}" if known else f"create DeviceClass {name.text[:_SHOWN]}"
        yield Violation(name.path, message, Stance.WARN, hint, why=_UNALLOCATED)
