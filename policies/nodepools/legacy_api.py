"""Object of a removed Karpenter API.

## Why is this bad?
Karpenter ignores the object: it launches no node, and Pods stay Pending. Karpenter removed `Provisioner`, `Machine`
and `AWSNodeTemplate` in v0.33, and every `v1beta1` kind in v1.1.0. If the old CRD is still installed, the API server
stores the object; otherwise the file cannot be applied.

## Instead
Write the `karpenter.sh/v1` NodePool and the `karpenter.k8s.aws/v1` EC2NodeClass. The fix is the converted object:
fields at their new paths, and the defaults of the old API written out, such as `kubernetes.io/arch: amd64` and
on-demand capacity in a Provisioner. The hint names fields without an equivalent in v1.

Machines and NodeClaims that an old Karpenter created for its own pools are allowed, because denying them would stop
Karpenter.

## Sources
Karpenter's "v1beta1 migration" (v0.32) and "v1 migration" (v1.1) guides; Karpenter v1.14.1 `pkg/apis/v1alpha1`:
`karpenter.sh/v1alpha1` NodeOverlay is a current API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.legacy_apis import LEGACY_APIS
from gpugate.policies.nodepools._conversion import as_received, converted
from gpugate.policies.sdk import objects
from gpugate.policies.sdk.findings import Replacement, Violation
from gpugate.policies.sdk.node_pools import made_by_karpenter
from gpugate.policies.sdk.policy import Params, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.nodepools._conversion import Converted
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import Context

_LEGACY: Final = {(api.group, api.version, api.kind): api for api in LEGACY_APIS}


@validates(
    objects.PROVISIONER,
    objects.PROVISIONING_PROVISIONER,
    objects.AWS_NODE_TEMPLATE,
    objects.NODE_POOL_V1BETA1,
    objects.EC2_NODE_CLASS_V1BETA1,
    objects.SCALABLE_NODE_GROUP,
    objects.HORIZONTAL_AUTOSCALER,
    objects.METRICS_PRODUCER,
)
def check(obj: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report the API, with the object to write instead."""
    yield from _violations(obj, ctx)


@validates(objects.MACHINE, objects.NODE_CLAIM_V1BETA1)
def check_node(obj: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report the same for a NodeClaim that a user creates."""
    if not made_by_karpenter(obj, ctx):
        yield from _violations(obj, ctx)


def _violations(obj: Field, ctx: Context[Params]) -> Iterator[Violation]:
    request = ctx.request
    # The API server converts an object to the version that the webhook requests; the user wrote the other one.
    gvk = request.requested_kind or request.kind
    api = _LEGACY.get((gvk.group, gvk.version, gvk.kind))
    if api is None:
        return
    new = converted(obj, gvk) if gvk == request.kind else as_received(obj)
    yield Violation(
        path=("apiVersion",),
        message=f"{gvk} was removed in Karpenter {api.removed}",
        hint=_hint(api.successor, new),
        fix=Replacement(new.objects) if new else None,
    )


def _hint(successor: str, new: Converted | None) -> str:
    hint = f"write a {successor}" if successor else "delete the object: Karpenter has no successor of it"
    open_points = "; ".join(new.open_points) if new else ""
    return f"{hint}; then {open_points}" if open_points else hint
