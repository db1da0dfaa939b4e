"""Administrative access to devices outside the namespaces intended for it.

## Why is this bad?
A claim with `adminAccess: true` gets devices that are allocated to other claims: its Pod can read and disturb every
GPU of the cluster. The scheduler and quotas do not count such a claim. Kubernetes allows it in namespaces with the
label `resource.kubernetes.io/admin-access: "true"`. Every user who can label a namespace can set that label.

## Instead
Request devices without `adminAccess`. Run monitoring and other platform services in the namespaces that
`admin_namespaces` names, or in namespaces that the configuration excludes. Only members of `admin_groups` may
set the label on other namespaces.

## Sources
`kubernetes/api` v0.36 `resource/v1/types.go` (AdminAccess, DRAAdminNamespaceLabelKey: the value is "true",
case-sensitive); Kubernetes v1.36 `pkg/registry/resource` (AuthorizedForAdmin); KEP-5018.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.claims._written import written_requests
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.concerns import Key
from gpugate.policies.sdk.findings import Patch, Patches, Violation
from gpugate.policies.sdk.gpu_demand import alternatives
from gpugate.policies.sdk.objects import NAMESPACE, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_LABEL: Final = "resource.kubernetes.io/admin-access"


class Params(PolicyParams, frozen=True, kw_only=True):
    """Where administrative access is allowed.

    Attributes:
        admin_namespaces: namespaces that may contain claims with administrative access; `*` matches anything.
        admin_groups: groups whose members may set the label on other namespaces.
    """

    admin_namespaces: tuple[str, ...] = ()
    admin_groups: tuple[str, ...] = ("system:masters",)


@validates(RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, params=Params)
def check_claim(claim: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report every request for administrative access."""
    if _is_admin_namespace(ctx):
        return
    for request in written_requests(claim, ctx):
        for ask in alternatives(request):
            access = ask["adminAccess"]
            if access.value is True:
                message = "adminAccess is not allowed in this namespace: it gives access to devices of other claims"
                reason = "requests devices without administrative access"
                yield Violation(
                    access.path,
                    message,
                    hint="remove adminAccess, or add the namespace to admin_namespaces",
                    fix=Patches((Patch("remove", access.path, None, reason),)),
                )


@validates(NAMESPACE, params=Params, concerns=Key("metadata.labels", (_LABEL,)))
def check_namespace(namespace: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report the label that allows administrative access on any other namespace."""
    label = namespace["metadata", "labels", _LABEL]
    if label.text != "true" or _is_admin_namespace(ctx) or set(ctx.request.groups) & set(ctx.params.admin_groups):
        return
    message = f"the label {_LABEL} allows claims for GPUs of other namespaces"
    yield Violation(
        label.path,
        message,
        hint="remove the label, or add the namespace to admin_namespaces",
        fix=Patches((Patch("remove", label.path, None, "denies claims with adminAccess in this namespace"),)),
        why="Users who can create claims in this namespace can read and disturb the GPUs of other namespaces.",
    )


def _is_admin_namespace(ctx: Context[Params]) -> bool:
    return any(formats.matches(pattern, ctx.request.namespace) for pattern in ctx.params.admin_namespaces)
