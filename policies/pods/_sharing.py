"""Alternatives to time-slicing: MIG slices where the GPU supports them, else MPS or a whole GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.instance_types import GPU_NAME
from gpugate.policies.data.mig_profiles import MIG_GPUS
from gpugate.policies.sdk import quantity, scheduling
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.scheduling import alternatives, selected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

PRODUCT: Final = "nvidia.com/gpu.product"
_MEMORY: Final = "gpugate.dev/gpu-memory"
_FAMILY: Final = "karpenter.k8s.aws/instance-family"
_NO_MIG: Final = "these GPUs have no MIG: share them by MPS with memory limits, or take a smaller GPU for each model"
_EITHER: Final = "ask for a MIG slice; on GPUs without MIG (T4, A10G, L4, L40S) use MPS or a smaller GPU for each model"
_SHOWN: Final = 3


def remedy(pod: Field, ctx: AnyContext) -> str:
    """Return what to write instead, in words."""
    products = selected(PRODUCT, ctx)
    families = _families(ctx)
    capable = [gpu for gpu in MIG_GPUS if families is None or families & set(gpu.families)]
    capable = [gpu for gpu in capable if not products or any(_is(gpu.name, product) for product in products)]
    if not capable:
        return _NO_MIG
    memory = _memory(pod)
    if not memory and families is None and not products:
        return _EITHER
    profiles = {name for gpu in capable if gpu.families for name in gpu.profiles}
    fitting = [name for name in _by_memory(profiles) if _gigabytes(name) >= memory]
    if not fitting:
        return "ask for a whole GPU: no MIG slice has so much memory"
    return f"ask for a MIG slice, such as {', '.join(fitting[:_SHOWN])}"


def _families(ctx: AnyContext) -> frozenset[str] | None:
    """Return the instance families with a GPU that the Pod may run on; None where it does not choose among them."""
    catalogue = ctx.table(INSTANCE_TYPES)
    with_gpu = catalogue.having(GPU_NAME)
    types = 0
    for required in ctx.derived(alternatives):
        types |= scheduling.matching(required, catalogue) & with_gpu
    if types == with_gpu:
        return None
    return frozenset(catalogue.label(_FAMILY, position) for position in catalogue.positions_in(types))


def _is(gpu: str, product: str) -> bool:
    """Tell whether a product label, such as `NVIDIA-A100-SXM4-40GB-SHARED`, is of a GPU of the table of MIG profiles."""
    words = set(product.split("-"))
    sized = any(word.endswith("GB") for word in words)
    models = ({w for w in model.split() if sized or not w.endswith("GB")} for model in gpu.split(" and "))
    return any(model <= words for model in models)


def _memory(pod: Field) -> int:
    """Return what the Pod says its model needs, in GB; 0 where it does not say, or not so that it can be read."""
    try:
        return int(-(-quantity.parse(pod["metadata", "annotations", _MEMORY].text) // 10**9))
    except quantity.QuantityError:
        return 0


def _by_memory(profiles: Iterable[str]) -> list[str]:
    """Sort profiles by memory; those with an attribute, which few GPUs offer, are left out."""
    return sorted((name for name in profiles if name.endswith("gb")), key=lambda name: (_gigabytes(name), name))


def _gigabytes(profile: str) -> int:
    return int(profile.partition(".")[2].removesuffix("gb"))
