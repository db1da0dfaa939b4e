"""ResourceClaim that takes every GPU of a node.

## Why is this bad?
One claim takes every GPU of a node, even if its Pod uses one. `allocationMode: All` allocates every device of the
class on the node. The Pod fits only on a node without allocated GPUs, and the number and the cost of its GPUs depend
on that node.

## Instead
Write the number of devices:

```yaml
exactly:
  deviceClassName: gpu.nvidia.com
  allocationMode: ExactCount
  count: 1
```

The policy applies to every class of accelerators, in every alternative under `firstAvailable`, but not to classes of
other devices. A claim with `adminAccess` allocates nothing; `claims/admin-access` reports it.

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
    """Report each request for all accelerators of a node."""
    for request in written_requests(claim, ctx):
        for ask in alternatives(request):
            device_class = ask["deviceClassName"].text
            takes_all = ask["allocationMode"].text == "All" and ask["adminAccess"].value is not True
            if takes_all and ctx.platform.is_accelerator_class(device_class):
                message = f"allocationMode All allocates every {device_class} device of a node"
                hint = "write allocationMode: ExactCount and the count of devices"
                yield Violation(ask["allocationMode"].path, message, hint=hint)
