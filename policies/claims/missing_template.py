"""Pod whose ResourceClaimTemplate does not exist.

## Why is this bad?
No claim can be created for the Pod, so it stays Pending. The API server accepts a Pod that names a
ResourceClaimTemplate which does not exist in its namespace. Only an event on the Pod shows the problem; its
Deployment or Job appears to be starting.

## Instead
Create the template in the namespace of the Pod, before the Pod. Templates are not shared between namespaces.

The policy is evaluated only if gpugate has read all templates: in a cluster, or in `check` with `--complete-context`.
The finding is a warning, because the API server accepts Pod and template in any order.

## Sources
`kubernetes/api` v0.36 `core/v1/types.go` (PodResourceClaim: the template is in the namespace of the Pod); Kubernetes v1.36
`pkg/controller/resourceclaim/controller.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.sdk.facts import Need, named, object_doubt
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import HAS_CLAIM
from gpugate.policies.sdk.objects import POD, RESOURCE_CLAIM_TEMPLATE
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext


@validates(POD, mode=Stance.WARN, needs=(Need(RESOURCE_CLAIM_TEMPLATE, ()),), concerns=HAS_CLAIM)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report each missing template that the Pod names."""
    for claim in pod["spec", "resourceClaims"]:
        template = claim["resourceClaimTemplateName"]
        if not template.text:
            continue
        fact = ctx.facts.list(RESOURCE_CLAIM_TEMPLATE, ctx.request.namespace)
        doubt = object_doubt(fact, RESOURCE_CLAIM_TEMPLATE, template.text)
        if doubt:
            yield doubt
        elif not named(fact, template.text):
            where = f"namespace {ctx.request.namespace}" if ctx.request.namespace else "its namespace"
            message = f"{where} has no ResourceClaimTemplate {template.text[:80]}: the Pod would stay Pending"
            yield Violation(template.path, message, hint="create the ResourceClaimTemplate before the Pod")
