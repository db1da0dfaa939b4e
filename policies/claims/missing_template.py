"""Pod whose ResourceClaimTemplate does not exist.

## Why is this bad?
A Pod that names a ResourceClaimTemplate which is not in its namespace is accepted and stays pending: no claim can be
made for it. An event on the Pod is the only sign, while the Deployment or Job around it looks as if it were starting.

## Instead
Create the template in the namespace of the Pod, before the Pod. Templates are not shared between namespaces.

It is judged only where all templates are known, in the cluster or with complete files. The API server takes Pod and
template in any order, so it is a warning.

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
    """Look up every template that the Pod names."""
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
            message = f"{where} has no ResourceClaimTemplate {template.text[:80]}: the Pod would stay pending"
            yield Violation(template.path, message, hint="create the template before the Pod")
