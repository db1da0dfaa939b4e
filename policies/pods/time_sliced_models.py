"""Inference Pod on a GPU that is shared by time-slicing.

## Why is this bad?
Models that share a GPU by time-slicing have no memory and no fault isolation: one that loads a larger batch runs the
others out of memory, and latency depends on what the neighbours do. A time-sliced GPU is `nvidia.com/gpu.shared`, or one
on a node whose product label ends in `-SHARED`.

## Instead
Give each model a MIG slice, which has its own memory, where the GPU can be cut (A100, H100, H200, B200 and the like).
T4, A10G, L4 and L40S cannot: use MPS with memory limits there, or a smaller GPU for each model. The annotation
`gpugate.dev/gpu-memory`, such as 10Gi, lets the report name the profiles that are large enough.

Time-slicing without renamed resources cannot be seen on a Pod, unless it selects its nodes by their product.

## Sources
- Shared resources and labels: NVIDIA k8s-device-plugin v0.20.0 `README.md` (`renameByDefault`), GPU feature discovery
  (`nvidia.com/gpu.product`, `nvidia.com/gpu.sharing-strategy`).
- GPUs without MIG: NVIDIA MIG user guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._amounts import asked
from gpugate.policies.pods._sharing import PRODUCT, remedy
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import NAMES_ACCELERATOR
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.platform import WorkloadClass
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.scheduling import selected, selecting_by
from gpugate.policies.sdk.workload_class import CLASS_NEEDS, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_STRATEGY: Final = "nvidia.com/gpu.sharing-strategy"


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which Pods should not share a GPU by time-slicing.

    Attributes:
        classes: their workload classes.
    """

    classes: tuple[WorkloadClass, ...] = ("inference",)


@validates(
    POD,
    params=Params,
    mode=Stance.WARN,
    needs=CLASS_NEEDS,
    tables=(INSTANCE_TYPES,),
    concerns=NAMES_ACCELERATOR | selecting_by(PRODUCT),
)
def check(pod: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report what asks for a shared GPU, or else what selects one; nodes that share by MPS are not meant."""
    found = next(_shared(pod, ctx), None)
    if found is None or selected(_STRATEGY, ctx) == {"mps"}:
        return
    name = ctx.derived(workload_class).name
    if name in ctx.params.classes:
        message = f"{found[1]} is time-sliced: {name} there has no memory of its own, nor a share it can count on"
        yield Violation(found[0].path, message, hint=remedy(pod, ctx))


def _shared(pod: Field, ctx: Context[Params]) -> Iterator[tuple[Field, str]]:
    for each in ctx.derived(asked):
        if each.name.endswith(".shared") and each.amount > 0:
            yield each.field, each.name
    products = selected(PRODUCT, ctx)
    if products and all(product.endswith("-SHARED") for product in products):
        selector = pod["spec", "nodeSelector", PRODUCT]
        yield selector or pod["spec", "affinity"], "the GPU of the selected nodes"
