"""The claims that people write, as opposed to those that Kubernetes makes from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.gpu_demand import claim_spec_of, device_requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

# The users that create claims from templates and from extended resources. The Pods of these claims have been evaluated,
# and denying a claim would only leave its Pod Pending. The second user equals the first if controllers share one
# identity (kube-controller-manager v1.36 without `--use-service-account-credentials`).
_MAKERS: Final = frozenset(
    {
        "system:serviceaccount:kube-system:resource-claim-controller",
        "system:kube-controller-manager",
        "system:kube-scheduler",
    }
)


def made_by_kubernetes(ctx: AnyContext) -> bool:
    """Tell whether the claim controller or the scheduler sent the object."""
    return ctx.request.user in _MAKERS


def written_spec(claim: Field, ctx: AnyContext) -> Field:
    """Return the spec of a claim, or of the claims of a template."""
    return claim_spec_of(claim, ctx.request.kind.kind)


def written_requests(claim: Field, ctx: AnyContext) -> Iterator[Field]:
    """Yield the requests of a claim or template; none if Kubernetes created it."""
    if not made_by_kubernetes(ctx):
        yield from device_requests(written_spec(claim, ctx))
