"""Whether a Pod may run on GPU nodes: by a toleration of their taints, or by a selector for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data import accelerators
from gpugate.policies.sdk import requirements
from gpugate.policies.sdk.concerns import EVERY_OBJECT, Each, Key, Listed, Text
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.node_requirements import REQUIRED, alternatives
from gpugate.policies.sdk.platform import Taint
from gpugate.policies.sdk.tolerations import tolerates

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.requirements import Requirements

# Labels of nodes with accelerators beside those of EC2 instance types: NVIDIA's and AMD's feature discovery, EKS Auto
# Mode, Karpenter on Azure.
_LABELS: Final = ("nvidia.com/", "amd.com/gpu", "eks.amazonaws.com/instance-gpu-", "karpenter.azure.com/sku-gpu-")

_TOLERATIONS: Final = "spec.tolerations"
# Which Pods tolerate a taint of GPU nodes by its name, and which tolerate every taint.
NAMES_GPU_TAINT: Final = Each(_TOLERATIONS, Text("key", Listed.GPU_TAINTS))
TOLERATES_EVERYTHING: Final = Each(_TOLERATIONS, Text("key", ("",)) & Text("operator", ("Exists",)))
# Which Pods may tolerate a taint of GPU nodes, or select such nodes: those that select none of their own run anywhere.
MAY_REACH_GPU_NODES: Final = (
    NAMES_GPU_TAINT | TOLERATES_EVERYTHING | Key("spec.nodeSelector") | Each(".".join(REQUIRED), EVERY_OBJECT)
)


def gpu_taints(ctx: AnyContext) -> tuple[Taint, ...]:
    """Return the taints that keep other Pods off nodes with accelerators."""
    own = (taint for taints in ctx.platform.taints.values() for taint in taints)
    return tuple(dict.fromkeys((*own, *(Taint(key=key) for key in accelerators.TAINT_KEYS.values()))))


def gpu_tolerations(pod: Field, ctx: AnyContext) -> tuple[Field, ...]:
    """Return the tolerations of a taint of GPU nodes; those of every taint are among them."""
    tolerations = tuple(pod["spec", "tolerations"])
    taints = gpu_taints(ctx) if tolerations else ()
    keys = {"", *(taint.key for taint in taints)}
    possible = (t for t in tolerations if t["key"].text in keys)
    return tuple(t for t in possible if any(tolerates(t, taint) for taint in taints))


def reaches_gpu_nodes(ctx: AnyContext) -> bool:
    """Tell whether a Pod tolerates a taint of GPU nodes, or selects such nodes; reads the table of instance types."""
    return bool(ctx.derived(gpu_tolerations)) or all(_selects(r, ctx) for r in ctx.derived(alternatives))


def _selects(required: Requirements, ctx: AnyContext) -> bool:
    for key, requirement in required.items():
        classes = ctx.platform.workload_classes.node_selectors.get(key, {})
        labelled = key.startswith(_LABELS) and requirement.values != {"false"}
        if requirement.operator in {"In", "Exists"} and (labelled or requirement.values & classes.keys()):
            return True
    catalogue = ctx.table(INSTANCE_TYPES)
    types = requirements.matching(required, catalogue)
    return bool(types) and types & catalogue.accelerated == types
