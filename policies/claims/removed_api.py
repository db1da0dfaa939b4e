"""ResourceClaim, template or DeviceClass in an API version that clusters no longer serve.

## Why is this bad?
Kubernetes serves `resource.k8s.io/v1` from 1.34 on, and leaves the older versions off unless somebody turns them on,
which a managed control plane does not allow. Applying the file then ends in `no matches for kind`. `v1alpha3` is gone
since 1.34, `v1beta1` goes with 1.38 and `v1beta2` with 1.39.

## Instead
Write `resource.k8s.io/v1`. In `v1alpha3` and `v1beta1` a request holds its members itself; in v1 they stand under
`exactly`:

```yaml
requests:
  - name: gpu
    exactly:
      deviceClassName: gpu.nvidia.com
```

The fix is the converted object. Alternatives under `firstAvailable` keep their shape. Nothing is said while the target
is older than 1.34, which has no v1.

## Sources
`kubernetes/api` v0.36 `resource/v1beta1` and `resource/v1beta2` (`zz_generated.prerelease-lifecycle.go`), v0.33 and v0.34
`resource/v1alpha3`; Kubernetes 1.24 changelog: new beta APIs are off by default (KEP-3136).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.policies.claims import _conversion
from gpugate.policies.claims._written import made_by_kubernetes
from gpugate.policies.sdk.findings import Patch, Patches, Replacement, Stance, Violation
from gpugate.policies.sdk.objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_V1_SINCE: Final = "1.34"


@dataclass(frozen=True, slots=True)
class _Lifecycle:
    """The releases of Kubernetes that deprecated and removed a version."""

    deprecated: str
    removed: str


_LIFECYCLES: Final = {
    "v1alpha3": _Lifecycle("1.34", "1.34"),
    "v1beta1": _Lifecycle("1.35", "1.38"),
    "v1beta2": _Lifecycle("1.36", "1.39"),
}


@validates(RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, DEVICE_CLASS, mode=Stance.WARN)
def check(obj: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report the version that was sent, with the object in v1."""
    # The API server may have converted the object; the user wrote the other version.
    sent = ctx.request.requested_kind or ctx.request.kind
    lifecycle = _LIFECYCLES.get(sent.version)
    if lifecycle is None or not at_least(ctx.target.kubernetes, _V1_SINCE) or made_by_kubernetes(ctx):
        return
    yield Violation(
        ("apiVersion",),
        f"{sent.api_version} {_fate(lifecycle, ctx.target.kubernetes)}",
        hint=_hint(_conversion.left_out(obj, ctx.request.kind.kind)),
        fix=_fix(obj, ctx),
    )


def _fate(lifecycle: _Lifecycle, target: str) -> str:
    if at_least(target, lifecycle.removed):
        return f"was removed in Kubernetes {lifecycle.removed}; the target is {target}"
    if at_least(target, lifecycle.deprecated):
        return f"is deprecated since Kubernetes {lifecycle.deprecated} and removed in {lifecycle.removed}"
    return f"is off by default, and removed in Kubernetes {lifecycle.removed}; the target is {target}"


def _hint(left_out: tuple[str, ...]) -> str:
    lost = f", and which has no {' and no '.join(left_out)}" if left_out else ""
    return f"write {_conversion.V1}, which Kubernetes serves from {_V1_SINCE} on{lost}"


def _fix(obj: Field, ctx: AnyContext) -> Patches | Replacement | None:
    if ctx.request.kind.api_version == _conversion.V1:
        return None  # what there is to see is converted already
    if _conversion.keeps_shape(obj, ctx.request.kind):
        reason = "writes the version that Kubernetes serves; the object has the same shape there"
        return Patches((Patch("set", ("apiVersion",), _conversion.V1, reason),), safe=True)
    new = _conversion.as_v1(obj, ctx.request.kind)
    return Replacement((new,), safe=True) if new else None
