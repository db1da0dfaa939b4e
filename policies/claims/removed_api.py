"""ResourceClaim, template, DeviceClass or ResourceClass in an API version that clusters no longer serve.

## Why is this bad?
A cluster that does not serve the version refuses the file with `no matches for kind`. Kubernetes serves
`resource.k8s.io/v1` from 1.34 on. Older versions are off by default, and a managed control plane does not allow you
to turn them on. `v1alpha2` was removed in 1.31 and `v1alpha3` in 1.34; `v1beta1` is removed in 1.38 and `v1beta2` in
1.39.

## Instead
Write `resource.k8s.io/v1`. In `v1alpha3` and `v1beta1` a request contains its fields directly; in v1 they are under
`exactly`:

```yaml
requests:
  - name: gpu
    exactly:
      deviceClassName: gpu.nvidia.com
```

A claim of `v1alpha2` names a ResourceClass and parameters of its driver, which have no equivalent in v1. Rewrite it
with `spec.devices.requests` and the DeviceClass of the driver; no fix is offered.

The fix is the converted object. Alternatives under `firstAvailable` keep their form. Nothing is reported for a target
older than 1.34, which does not serve v1.

## Sources
`kubernetes/api` v0.36 `resource/v1beta1` and `resource/v1beta2` (`zz_generated.prerelease-lifecycle.go`), v0.33 and v0.34
`resource/v1alpha3`, v0.30 `resource/v1alpha2`; Kubernetes 1.31 changelog (v1alpha2 replaced by v1alpha3); Kubernetes 1.24 changelog: new beta APIs are off by default (KEP-3136).
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Final

from gpugate.policies.claims._written import made_by_kubernetes
from gpugate.policies.sdk.findings import Patch, Patches, Replacement, Stance, Violation
from gpugate.policies.sdk.gpu_demand import INLINE_VERSIONS, MEMBERS, claim_spec_of, device_requests, own_members
from gpugate.policies.sdk.objects import (
    DEVICE_CLASS,
    OLD_RESOURCE_CLAIM,
    OLD_RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_CLASS,
)
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field, Json
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.policies.sdk.policy import AnyContext

V1: Final = "resource.k8s.io/v1"

# Members of v1alpha3 in Kubernetes 1.31 that later versions do not have.
_DROPPED: Final = ("controller", "suitableNodes")
# Metadata that the API server and kubectl write.
_BOOKKEEPING: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def fields_left_out(obj: Field, kind: str) -> tuple[str, ...]:
    """Return the members that v1 does not have."""
    spec = claim_spec_of(obj, kind)
    return tuple(name for name in _DROPPED if spec[name])


def keeps_shape(obj: Field, kind: GroupVersionKind) -> bool:
    """Tell whether the object only needs another version."""
    return not fields_left_out(obj, kind.kind) and (kind.kind == "DeviceClass" or kind.version not in INLINE_VERSIONS)


def as_v1(obj: Field, kind: GroupVersionKind) -> dict[str, Json] | None:
    """Return an object in v1, without its status; None if v1 cannot express a request."""
    old = claim_spec_of(obj, kind.kind)
    spec: dict[str, Json] = {key: value for key, value in old.mapping.items() if key not in _DROPPED}
    if kind.kind != "DeviceClass":
        requests: list[Json] = [_request(request) for request in device_requests(old)]
        if not all(requests):
            return None
        spec["devices"] = {**old["devices"].mapping, "requests": requests}
    if kind.kind == "ResourceClaimTemplate":
        spec = {**obj["spec"].mapping, "spec": spec}
    return {"apiVersion": V1, "kind": kind.kind, "metadata": _metadata(obj["metadata"]), "spec": deepcopy(spec)}


def _request(request: Field) -> dict[str, Json]:
    """Return a request with its members under `exactly`; empty if it has others, or is not an object."""
    inline: dict[str, Json] = {key: request[key].value for key in own_members(request)}
    others = {key: value for key, value in request.mapping.items() if key not in MEMBERS}
    if not inline:
        return others
    return {} if others.keys() & {"exactly", "firstAvailable"} else {**others, "exactly": inline}


def _metadata(metadata: Field) -> dict[str, Json]:
    remaining = {key: deepcopy(value) for key, value in metadata.mapping.items() if key not in _BOOKKEEPING}
    annotations: dict[str, Json] = {k: v for k, v in metadata["annotations"].labels.items() if k != _LAST_APPLIED}
    if annotations:
        remaining["annotations"] = annotations
    else:
        remaining.pop("annotations", None)
    return remaining


_V1_SINCE: Final = "1.34"


class _Lifecycle(Struct, frozen=True):
    """The releases of Kubernetes that deprecated and removed a version."""

    deprecated: str
    removed: str


_LIFECYCLES: Final = {
    "v1alpha1": _Lifecycle("1.27", "1.27"),
    "v1alpha2": _Lifecycle("1.31", "1.31"),
    "v1alpha3": _Lifecycle("1.34", "1.34"),
    "v1beta1": _Lifecycle("1.35", "1.38"),
    "v1beta2": _Lifecycle("1.36", "1.39"),
}


@validates(RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, DEVICE_CLASS, mode=Stance.WARN)
def check(obj: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report the version that the user sent, with the object in v1 as the fix."""
    # The API server may have converted the object; the user wrote the other version.
    sent = ctx.request.requested_kind or ctx.request.kind
    lifecycle = _LIFECYCLES.get(sent.version)
    if lifecycle is None or not at_least(ctx.target.kubernetes, _V1_SINCE) or made_by_kubernetes(ctx):
        return
    yield Violation(
        ("apiVersion",),
        f"{sent.api_version} {_fate(lifecycle, ctx.target.kubernetes)}",
        hint=_hint(fields_left_out(obj, ctx.request.kind.kind)),
        fix=_fix(obj, ctx),
        why="" if at_least(ctx.target.kubernetes, lifecycle.removed) else _off(lifecycle),
    )


@validates(OLD_RESOURCE_CLAIM, OLD_RESOURCE_CLAIM_TEMPLATE, RESOURCE_CLASS, mode=Stance.WARN)
def check_old(_obj: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report the versions with another device model, which cannot be converted."""
    sent, version = ctx.request.kind, ctx.target.kubernetes
    lifecycle = _LIFECYCLES.get(sent.version)
    if lifecycle is None or not at_least(version, _V1_SINCE):
        return
    if sent.kind == "ResourceClass":
        hint = f"use the DeviceClass of the driver, or write a {V1} DeviceClass"
    else:
        hint = f"write a {V1} {sent.kind} with spec.devices.requests and the DeviceClass of the driver"
    yield Violation(("apiVersion",), f"{sent.api_version} {_fate(lifecycle, version)}", hint=hint)


def _fate(lifecycle: _Lifecycle, target: str) -> str:
    if at_least(target, lifecycle.removed):
        return f"was removed in Kubernetes {lifecycle.removed}; the target is {target}"
    if at_least(target, lifecycle.deprecated):
        return (
            f"is off by default, deprecated since Kubernetes {lifecycle.deprecated}, and removed in {lifecycle.removed}"
        )
    return f"is off by default, and removed in Kubernetes {lifecycle.removed}; the target is {target}"


def _off(lifecycle: _Lifecycle) -> str:
    return (
        "Applying the file fails with `no matches for kind`, unless the API server enables this version. From Kubernetes "
        f"{lifecycle.removed}, it always fails."
    )


def _hint(left_out: tuple[str, ...]) -> str:
    lost = f"; v1 has no {' and no '.join(left_out)}" if left_out else ""
    return f"write {V1}, which Kubernetes serves from {_V1_SINCE} on{lost}"


def _fix(obj: Field, ctx: AnyContext) -> Patches | Replacement | None:
    if ctx.request.kind.api_version == V1:
        return None  # the API server already converted the object
    if keeps_shape(obj, ctx.request.kind):
        reason = "writes the version that Kubernetes serves; the other fields do not change"
        return Patches((Patch("set", ("apiVersion",), V1, reason),), safe=True)
    new = as_v1(obj, ctx.request.kind)
    return Replacement((new,), safe=True) if new else None
