"""Pod with a GPU claim that no container uses.

## Why is this bad?
The GPUs are allocated to the Pod and stay idle. The scheduler allocates every claim of a Pod, but kubelet gives devices
only to containers that name the claim in `resources.claims`. So the Pod holds GPUs that none of its containers can use,
and its program starts without a GPU.

## Instead
Add the claim to `resources.claims` of the container that uses the GPUs, or remove it from `spec.resourceClaims`. A container
gets all devices of the claim, unless it also names a request:

```yaml
resources:
  claims:
    - {name: gpu, request: workers}
```

If a claim has several requests and containers name only some of them, the policy reports the others. It evaluates only
claims for accelerators: other drivers, such as those of network interfaces, may use a claim for the whole Pod. Requests
with `adminAccess` allocate nothing. If a container names a claim or a request that does not exist,
`claims/unknown-claim-name` reports it instead.

The policy needs the ResourceClaim or ResourceClaimTemplate: in `check`, it must be among the files.

## Sources
Kubernetes v1.36 `pkg/kubelet/cm/dra/manager.go` (GetResources: only claims of the container),
`pkg/scheduler/framework/plugins/dynamicresources` (all claims of the Pod are allocated); `kubernetes/api` v0.36
`core/v1/types.go` (ResourceClaim.Request).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, HAS_CLAIM, alternatives, claim_spec, device_requests
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext


@validates(POD, mode=Stance.WARN, needs=CLAIM_NEEDS, concerns=HAS_CLAIM)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report each accelerator claim, or request of one, that no container names."""
    uses = _uses(pod)
    claims = tuple(pod["spec", "resourceClaims"])
    if not uses.keys() <= {claim["name"].text for claim in claims}:
        return  # a misspelt name, which claims/unknown-claim-name reports
    for claim in claims:
        name = claim["name"].text
        used = uses.get(name, frozenset())
        if not name or "" in used:
            continue
        spec = claim_spec(claim, ctx)
        if spec is None:
            if not used:
                yield Skip(f"the devices of claim {name} are unknown")
            continue
        if not used <= {request["name"].text for request in device_requests(spec)}:
            continue
        unused = [request for request in _accelerator_requests(spec, ctx) if request not in used]
        if unused:
            yield _violation(claim, unused, partly=bool(used))


def _violation(claim: Field, unused: list[str], *, partly: bool) -> Violation:
    name = claim["name"].text
    if partly:
        requests = f"request {unused[0]}" if len(unused) == 1 else f"requests {', '.join(unused[:3])}"
        requests += f" and {len(unused) - 3} more" if len(unused) > 3 else ""
        message = f"no container uses {requests} of the GPU claim {name}"
        hint = f"add the request to the resources.claims of a container, or use a claim without {'it' if len(unused) == 1 else 'them'}"
    else:
        message = f"no container uses the GPU claim {name}"
        hint = f"add `claims: [{{name: {name}}}]` to the resources of the container that uses the GPUs, or remove the claim"
    why = "The scheduler allocates the devices to the Pod, and no container can use them."
    return Violation(claim["name"].path, message, hint=hint, why=why)


def _uses(pod: Field) -> dict[str, frozenset[str]]:
    """Return claim -> its requests that containers name; an empty name stands for all of them."""
    uses: dict[str, set[str]] = {}
    spec = pod["spec"]
    for holder in (spec, *spec["containers"], *spec["initContainers"]):
        for claim in holder["resources", "claims"]:
            uses.setdefault(claim["name"].text, set()).add(claim["request"].text)
    return {name: frozenset(requests) for name, requests in uses.items()}


def _accelerator_requests(spec: Field, ctx: AnyContext) -> Iterator[str]:
    """Yield the names of the requests that allocate an accelerator."""
    for request in device_requests(spec):
        asks = alternatives(request)
        if any(ask["adminAccess"].value is True for ask in asks):
            continue
        if asks and all(ctx.platform.is_accelerator_class(ask["deviceClassName"].text) for ask in asks):
            yield request["name"].text
