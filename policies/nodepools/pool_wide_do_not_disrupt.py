"""GPU NodePool that puts the annotation do-not-disrupt on all its nodes.

## Why is this bad?
Karpenter never consolidates these nodes and never replaces them for drift: GPU nodes stay when they are empty, and
keep the image they started with. Annotations of the template are copied to every node. Nodes with
`karpenter.sh/do-not-disrupt: "true"` still end at `expireAfter` and by Spot interruptions, so the annotation does not
even protect running Pods.

## Instead
Annotate the Pods that must not be disrupted, not the nodes; `pods/unprotected-training` does so for training. To
protect a whole pool, use disruption budgets with `reasons: [Underutilized, Drifted]`.

Only the value `"true"` has an effect on nodes; other values are not reported. Pools with `spec.replicas` and pools
with only reserved capacity are not reported, because their nodes are kept on purpose.

## Sources
Karpenter v1.14.1 `pkg/controllers/state/statenode.go` (ValidateNodeDisruptable),
`pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go` (annotations of the template).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._gpu_pools import accelerator, if_gpu_pool, is_reserved, is_static
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Params, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import Context

_KEY: Final = "karpenter.sh/do-not-disrupt"


@validates(NODE_POOL, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report the annotation on the template of the nodes."""
    annotation = pool["spec", "template", "metadata", "annotations", _KEY]
    if annotation.text != "true" or is_static(pool) or is_reserved(pool, ctx):
        return
    violation = Violation(
        annotation.path,
        f"{_KEY} on every node of a pool of {ctx.derived(accelerator)} nodes: Karpenter does not even remove empty nodes",
        hint="remove the annotation, and annotate the Pods that must not be disrupted",
        fix=Patches((Patch("remove", annotation.path, None, "lets Karpenter remove empty nodes"),)),
    )
    yield from if_gpu_pool(pool, ctx, (violation,))
