"""ResourceClaim that the API server refuses, or that no node can meet.

## Why is this bad?
A claim in the shape of another API version, with two requests of one name or with a reference to none cannot be
created, and neither can a template with one. A claim is allocated on one node, so one that asks for more devices than
the largest node has leaves its Pod pending for ever.

## Instead
In `resource.k8s.io/v1` and `v1beta2` a request has either `exactly` or `firstAvailable`:

```yaml
requests:
  - name: gpu
    exactly:
      deviceClassName: gpu.nvidia.com
      count: 1
```

A claim has at most 32 requests, each with at most 8 alternatives, and names that are DNS labels. What it asks for of one
device class stays within `max_devices`; of alternatives the largest counts.

## Sources
Kubernetes v1.36 `pkg/apis/resource/validation/validation.go`, `kubernetes/api` v0.36 `resource/v1/types.go`; EC2 instance
types as of 2026-07-20: no type has more than 8 NVIDIA GPUs or 16 Neuron devices; NVIDIA MIG user guide: at most 7 slices
per GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.claims._request_shape import (
    MOST_REQUESTS,
    faults_of_names,
    faults_of_references,
    faults_of_request,
)
from gpugate.policies.claims._written import made_by_kubernetes, written_requests, written_spec
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.gpu_demand import alternatives
from gpugate.policies.sdk.objects import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_MOST_DEVICES: Final = {"gpu.nvidia.com": 8, "vfio.gpu.nvidia.com": 8, "mig*.nvidia.com": 56, "neuron.aws.com": 16}


class Params(PolicyParams, frozen=True, kw_only=True):
    """How much one claim may ask for.

    Attributes:
        max_devices: device class, where `*` stands for anything -> the most devices of it in one claim; the first that
            fits decides, and other classes have no bound.
    """

    max_devices: dict[str, Annotated[int, msgspec.Meta(ge=1)]] = msgspec.field(
        default_factory=lambda: dict(_MOST_DEVICES),
    )


@validates(RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, params=Params)
def check(claim: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report faults of the requests, of their names, of references to them, and what is too much."""
    if made_by_kubernetes(ctx):
        return
    devices = written_spec(claim, ctx)["devices"]
    requests = tuple(devices["requests"])
    if len(requests) > MOST_REQUESTS:
        message = f"{len(requests)} requests, a claim may have {MOST_REQUESTS}"
        yield Violation(devices["requests"].path, message, hint="split the claim")
    yield from faults_of_names(requests, "request")
    for request in requests:
        yield from faults_of_request(request, ctx.request.kind.version)
    yield from faults_of_references(devices)
    yield from _too_many(claim, ctx)


def _too_many(claim: Field, ctx: Context[Params]) -> Iterator[Violation]:
    totals: dict[str, int] = {}
    for request in written_requests(claim, ctx):
        largest: dict[str, Field] = {}
        for ask in alternatives(request):
            bounded = _pattern(ask["deviceClassName"].text, ctx.params)
            if bounded and _count(ask) > (_count(largest[bounded]) if bounded in largest else 0):
                largest[bounded] = ask
        for pattern, ask in largest.items():
            before, most = totals.get(pattern, 0), ctx.params.max_devices[pattern]
            totals[pattern] = before + _count(ask)
            if before <= most < totals[pattern]:
                message = (
                    f"the claim asks for {totals[pattern]} {ask['deviceClassName'].text} devices, the bound is {most}"
                )
                hint = "ask for less, or share the work among Pods with a claim each"
                yield Violation(ask["count"].path, message, hint=hint)


def _count(ask: Field) -> int:
    return 1 if ask["count"].integer is None else ask["count"].integer or 0


def _pattern(device_class: str, params: Params) -> str:
    return next((pattern for pattern in params.max_devices if formats.matches(pattern, device_class)), "")
