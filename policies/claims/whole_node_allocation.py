"""ResourceClaim that takes every GPU of a node.

## Why is this bad?
`allocationMode: All` allocates every device of the class that a node has, for one claim. The Pod holds all of them
whatever it uses, it only fits on a node where nobody has a GPU yet, and what it gets, and costs, depends on the node it
lands on.

## Instead
Say how many:

```yaml
exactly:
  deviceClassName: gpu.nvidia.com
  allocationMode: ExactCount
  count: 1
```

It counts for every class of accelerators, in every alternative under `firstAvailable`, and not for classes of other
devices. A claim with `adminAccess` allocates nothing, and is the business of `claims/admin-access`.

## Sources
`kubernetes/api` v0.36 `resource/v1/types.go` (DeviceAllocationModeAll: all matching devices of the pool, and none may be
allocated already; AdminAccess).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.claims._written import written_requests
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.gpu_demand import alternatives
from gpugate.policies.sdk.objects import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext


@validates(RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE)
def check(claim: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report every request for all accelerators of a node."""
    for request in written_requests(claim, ctx):
        for ask in alternatives(request):
            device_class = ask["deviceClassName"].text
            takes_all = ask["allocationMode"].text == "All" and ask["adminAccess"].value is not True
            if takes_all and ctx.platform.is_accelerator_class(device_class):
                message = f"allocationMode All takes every {device_class} device of a node"
                hint = "write allocationMode: ExactCount and a count"
                yield Violation(ask["allocationMode"].path, message, hint=hint)
