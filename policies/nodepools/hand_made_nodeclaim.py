"""NodeClaim for a GPU node that Karpenter did not create.

## Why is this bad?
Karpenter launches a node for every NodeClaim, even if the limit of its NodePool is reached. Without the label of an existing
NodePool, Karpenter never consolidates the node, and never replaces it when its image is old: an empty GPU node stays until
its NodeClaim expires, by default after 30 days, or is deleted.

## Instead
Create a NodePool, and Pods that request GPUs. Karpenter then creates the NodeClaims. For nodes that are always there, use
a static NodePool (`spec.replicas`).

The policy evaluates only NodeClaims for nodes with accelerators. At admission, the user who creates a NodeClaim decides
whether it is Karpenter's. An unknown ServiceAccount whose NodeClaims have Karpenter's owner, label and name, or
KAITO's labels, may be such a controller under another name: its NodeClaims are allowed with a warning, because to deny them
would leave the cluster without new nodes. Name it under `platform.karpenter_users` in the policy file, with the users of
your other controllers that create NodeClaims. In files and in an audit the user is unknown. There, a NodeClaim with
Karpenter's owner, label and name is Karpenter's, and NodeClaims with KAITO's labels are not evaluated.

## Sources
Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/scheduler.go` (limits apply when Karpenter itself creates
NodeClaims), `pkg/controllers/disruption/types.go` (NewCandidate needs the NodePool of a node),
`pkg/controllers/nodeclaim/disruption/controller.go`, `pkg/apis/v1/nodeclaim.go` (`expireAfter`: 720h); KAITO
`pkg/utils/nodeclaim/nodeclaim.go` (its labels, and a NodePool that does not exist).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, is_for_accelerators, is_unlisted_account, made_by_karpenter
from gpugate.policies.sdk.objects import NODE_CLAIM
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

# Labels that KAITO sets on the NodeClaims that it creates for a workspace or a RAG engine.
_OF_KAITO: Final = ("kaito.sh/workspace", "kaito.sh/ragengine")
_UNLISTED: Final = (
    "The NodeClaim looks like that of a controller, so it is allowed; but any ServiceAccount that may create NodeClaims can "
    "make it look so."
)


@validates(NODE_CLAIM, tables=(INSTANCE_TYPES,))
def check(claim: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a NodeClaim with another sender than Karpenter."""
    if not _is_for_accelerators(claim, ctx):
        return
    path = claim["metadata", "name"].path
    of_kaito = any(label in claim["metadata", "labels"].labels for label in _OF_KAITO)
    of_karpenter = made_by_karpenter(claim, ctx)
    if (of_karpenter or of_kaito) and is_unlisted_account(ctx):
        yield Violation(
            path,
            f"it is unknown whether the ServiceAccount {ctx.request.user!r} is that of a controller for nodes",
            hint="add it to platform.karpenter_users in the policy file if Karpenter or KAITO runs with it",
            at_most=Stance.WARN,
            why=_UNLISTED,
        )
    elif of_karpenter:
        return
    elif of_kaito and not ctx.request.user:
        yield Skip("it is unknown who created the NodeClaim, which has a label of KAITO")
    else:
        yield Violation(
            path,
            "Karpenter did not create this NodeClaim: the limits of NodePools do not apply to it",
            hint="create a NodePool instead, with spec.replicas if its nodes are always there",
        )


def _is_for_accelerators(claim: Field, ctx: AnyContext) -> bool:
    requests = claim["spec", "resources", "requests"].mapping
    return is_for_accelerators(claim, ctx) or any(ctx.platform.is_accelerator(name) for name in requests)
