"""ResourceClaim for a MIG slice without its profile.

## Why is this bad?
The class `mig.nvidia.com` contains slices of every size, and a claim without a selector gets any of them. With 10 GB
the model may not fit; with 80 GB it may hold seven times the memory that it needs. A selector that reads the profile
from another driver's attributes fails when it is evaluated, and no device is selected.

## Instead
Select by profile, as the driver publishes it:

```yaml
selectors:
  - cel:
      expression: device.attributes['gpu.nvidia.com'].profile == '1g.10gb'
```

A selector on the capacity of a slice, such as its memory, or on its `uuid` is enough too.

## Sources
NVIDIA DRA driver v0.4.1 `deployments/helm/dra-driver-nvidia-gpu/templates/deviceclass-mig.yaml`,
`cmd/gpu-kubelet-plugin/deviceinfo.go` (attributes and capacities); `kubernetes/api` v0.36 `resource/v1/types.go` (an error
in a selector keeps the device from being chosen).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.claims._written import written_requests
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.gpu_demand import alternatives, readable_cel
from gpugate.policies.sdk.objects import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field, Path

_DRIVER: Final = "gpu.nvidia.com"
_CHOOSES: Final = re.compile(r"\bprofile\b|\buuid\b|\bdevice\.capacity\b")
_ATTRIBUTE: Final = re.compile(r"""device\.attributes\[(['"])(?P<domain>[^'"]{1,63})\1\]\.profile\b""")


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which classes contain slices of every size.

    Attributes:
        device_classes: names of DeviceClasses for MIG slices; `*` matches anything.
    """

    device_classes: tuple[str, ...] = ("mig.nvidia.com",)


@validates(RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, params=Params, mode=Stance.WARN)
def check(claim: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report a missing selector for the profile, and a selector with the wrong domain."""
    for request in written_requests(claim, ctx):
        for ask in alternatives(request):
            device_class = ask["deviceClassName"].text
            # A request for all devices, or with administrative access, needs no profile.
            exempt = ask["allocationMode"].text == "All" or ask["adminAccess"].value is True
            if not exempt and any(formats.matches(pattern, device_class) for pattern in ctx.params.device_classes):
                yield from _of_slices(ask, device_class)


def _of_slices(ask: Field, device_class: str) -> Iterator[Violation]:
    expressions = [selector["cel", "expression"] for selector in ask["selectors"]]
    texts = [readable_cel(expression) for expression in expressions]
    unread = any(expression.text and not text for expression, text in zip(expressions, texts, strict=True))
    if not unread and not any(_CHOOSES.search(text) for text in texts):
        path: Path = ask["selectors"].path if ask["selectors"] else ask["deviceClassName"].path
        message = f"{device_class} without a selector on the profile: the claim gets a slice of any size"
        hint = f"add the CEL selector device.attributes['{_DRIVER}'].profile == '1g.10gb', with your profile"
        why = "The model may not fit into the slice, or holds several times the memory that it needs."
        yield Violation(path, message, hint=hint, why=why)
    for expression, text in zip(expressions, texts, strict=True):
        attribute = _ATTRIBUTE.search(text)
        if attribute and attribute["domain"] != _DRIVER:
            message = f"device.attributes['{attribute['domain']}'] has no attribute profile; the driver is {_DRIVER}"
            fixed = _ATTRIBUTE.sub(f"device.attributes['{_DRIVER}'].profile", text)
            patch = Patch("set", expression.path, fixed, "reads the attribute that the driver publishes")
            why = "The selector fails when it is evaluated, so no device is selected and the Pod stays Pending."
            yield Violation(expression.path, message, hint="write the driver's name", fix=Patches((patch,)), why=why)
