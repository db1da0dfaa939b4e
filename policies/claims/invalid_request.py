"""ResourceClaim that the API server refuses, or that no node can satisfy.

## Why is this bad?
The API server refuses a claim whose requests have the form of another API version, a claim that gives two requests
the same name, and a claim that refers to a request that it does not have. It also refuses a ResourceClaimTemplate
with such an error. The devices of a claim are allocated on one node: if no node has as many devices, the Pod stays
Pending.

## Instead
In `resource.k8s.io/v1` and `v1beta2` a request has either `exactly` or `firstAvailable`:

```yaml
requests:
  - name: gpu
    exactly:
      deviceClassName: gpu.nvidia.com
      count: 1
```

The API server allows at most 32 requests in a claim, and at most 8 alternatives (`firstAvailable`) in a request. The
name of a request must be a DNS label. gpugate also denies a claim that requests more than `max_devices` devices of
one device class. Of the alternatives of a request, it counts the largest.

## Sources
Kubernetes v1.36 `pkg/apis/resource/validation/validation.go`, `kubernetes/api` v0.36 `resource/v1/types.go`; EC2 instance
types as of 2026-07-20: no type has more than 8 NVIDIA GPUs or 16 Neuron devices; NVIDIA MIG user guide: at most 7 slices
per GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.claims._written import made_by_kubernetes, written_requests, written_spec
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.findings import Patch, Patches, Violation
from gpugate.policies.sdk.gpu_demand import INLINE_VERSIONS, alternatives, own_members
from gpugate.policies.sdk.objects import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.field import Field

# Source: Kubernetes v1.36 `pkg/apis/resource/validation/validation.go` (validateDeviceClaim and the functions that it
# calls), `pkg/apis/resource/types.go` (sizes). Only the API server compiles selectors.
MOST_REQUESTS: Final = 32
_MOST_ALTERNATIVES: Final = 8
_MODES: Final = ("ExactCount", "All")


def faults_of_request(request: Field, version: str) -> Iterator[Violation]:
    """Yield the faults of one request in an API version."""
    yield from _of_form(request, version)
    yield from _of_alternatives(request["firstAvailable"])
    for ask in alternatives(request):
        yield from _of_members(ask)


def faults_of_names(named: Iterable[Field], term: str) -> Iterator[Violation]:
    """Yield missing, duplicate and invalid names of requests or alternatives."""
    earlier: set[str] = set()
    for element in named:
        name = element["name"].text
        if not name:
            yield Violation(element["name"].path, f"the {term} is missing its name", hint="add a name, such as gpu")
        elif not formats.is_label(name):
            message = f'"{name[:63]}" is not a valid {term} name (a DNS label)'
            yield Violation(element["name"].path, message, hint="use at most 63 lower-case letters, digits and hyphens")
        elif name in earlier:
            message = f'the claim has two {term}s named "{name}"'
            yield Violation(element["name"].path, message, hint="rename one of them")
        earlier.add(name)


def faults_of_references(devices: Field) -> Iterator[Violation]:
    """Yield the requests that a constraint or a configuration names and the claim does not contain."""
    known: set[str] = set()
    for request in devices["requests"]:
        known.add(request["name"].text)
        known.update(f"{request['name'].text}/{ask['name'].text}" for ask in request["firstAvailable"])
    for user in (*devices["constraints"], *devices["config"]):
        for reference in user["requests"]:
            if reference.text not in known:
                message = f'the claim has no request named "{reference.text[:127]}"'
                yield Violation(
                    reference.path, message, hint="write the name of a request of this claim, or request/alternative"
                )


def _of_form(request: Field, version: str) -> Iterator[Violation]:
    inline = own_members(request)
    exactly, first = request["exactly"], request["firstAvailable"]
    if version in INLINE_VERSIONS and exactly:
        message = f"{version} has no exactly: the fields belong in the request itself"
        yield Violation(exactly.path, message, hint="write apiVersion: resource.k8s.io/v1")
    elif version not in INLINE_VERSIONS and inline:
        message = f"{inline[0]} is in the request itself, as in v1beta1; {version} expects it under exactly"
        fix = None if exactly or first else _wrapped(request, inline)
        yield Violation(request[inline[0]].path, message, hint="move it under exactly", fix=fix)
    elif not (inline or exactly or first.value):
        wanted = "deviceClassName" if version in INLINE_VERSIONS else "exactly"
        message = f"the request names no device: {wanted} or firstAvailable is required"
        yield Violation(request.path, message, hint=f"write {wanted}")
    if first.value and (inline or exactly):
        message = "the request has both a device class and alternatives under firstAvailable"
        yield Violation(first.path, message, hint="move each into a request, or all of them under firstAvailable")


def _wrapped(request: Field, inline: tuple[str, ...]) -> Patches:
    reason = "moves the fields of the request under exactly, as this version requires"
    members = {name: request[name].value for name in inline}
    removed = (Patch("remove", request[name].path, None, reason) for name in inline)
    return Patches((*removed, Patch("set", request["exactly"].path, members, reason)), safe=True)


def _of_alternatives(first: Field) -> Iterator[Violation]:
    count = len(tuple(first))
    if count > _MOST_ALTERNATIVES:
        message = f"{count} alternatives in one request (maximum: {_MOST_ALTERNATIVES})"
        yield Violation(first.path, message, hint="remove the last ones")
    yield from faults_of_names(first, "alternative")
    for ask in first:
        if ask["adminAccess"]:
            yield Violation(
                ask["adminAccess"].path, "adminAccess is not allowed in an alternative", hint="remove adminAccess"
            )


def _of_members(ask: Field) -> Iterator[Violation]:
    if not ask["deviceClassName"].text:
        message = "missing deviceClassName"
        yield Violation(ask["deviceClassName"].path, message, hint="add deviceClassName, such as gpu.nvidia.com")
    mode, count = ask["allocationMode"], ask["count"]
    if mode and mode.value not in _MODES:
        yield Violation(
            mode.path,
            "invalid allocationMode; it must be ExactCount or All",
            hint="write ExactCount, or remove the field",
        )
    elif mode.text == "All" and count.value:
        yield Violation(
            count.path,
            "count is not allowed with allocationMode All",
            hint="remove count, or write allocationMode: ExactCount",
        )
    elif count and (count.integer is None or count.integer < 1):
        yield Violation(count.path, "count must be a whole number above 0", hint="write count: 1")


_MOST_DEVICES: Final = {"gpu.nvidia.com": 8, "vfio.gpu.nvidia.com": 8, "mig*.nvidia.com": 56, "neuron.aws.com": 16}


class Params(PolicyParams, frozen=True, kw_only=True):
    """How much one claim may request.

    Attributes:
        max_devices: the maximum number of devices in one claim, by device class. `*` in the name of a class matches any
            characters. The first entry that matches applies; a class that no entry matches has no maximum.
    """

    max_devices: dict[str, Annotated[int, msgspec.Meta(ge=1)]] = msgspec.field(
        default_factory=lambda: dict(_MOST_DEVICES),
    )


@validates(RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, params=Params)
def check(claim: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report faults of the requests, of their names and references, and amounts above the maximum."""
    if made_by_kubernetes(ctx):
        return
    devices = written_spec(claim, ctx)["devices"]
    requests = tuple(devices["requests"])
    if len(requests) > MOST_REQUESTS:
        message = f"{len(requests)} requests in one claim (maximum: {MOST_REQUESTS})"
        yield Violation(devices["requests"].path, message, hint="split the claim into several")
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
                    f"the claim requests {totals[pattern]} {ask['deviceClassName'].text} devices (maximum: {most})"
                )
                hint = "request fewer devices, or split the work among Pods with a claim each"
                why = "The devices of a claim are on one node: if no node has as many, the Pod stays Pending."
                yield Violation(ask["count"].path, message, hint=hint, why=why)


def _count(ask: Field) -> int:
    return 1 if ask["count"].integer is None else ask["count"].integer or 0


def _pattern(device_class: str, params: Params) -> str:
    return next((pattern for pattern in params.max_devices if formats.matches(pattern, device_class)), "")
