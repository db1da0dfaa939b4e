"""Inference Pod on a GPU that is shared by time-slicing.

## Why is this bad?
Models that share a GPU by time-slicing have neither memory isolation nor fault isolation. If one loads a larger
batch, the others run out of memory, and the latency of one depends on the load of the others.

A time-sliced GPU is `nvidia.com/gpu.shared`, or one on a node whose product label ends in `-SHARED`.

## Instead
Give each model a MIG slice, which has its own memory, if the GPU supports MIG (A100, H100, H200, B200 and the like).
T4, A10G, L4 and L40S do not support MIG: use MPS with memory limits, or a smaller GPU for each model. If the annotation
`gpugate.dev/gpu-memory`, such as `10Gi`, gives the memory of the model, the finding names profiles that are large
enough.

If the device plugin does not rename shared GPUs, gpugate recognizes time-slicing only if the Pod selects its nodes by
their product label.

## Sources
- Shared resources and labels: NVIDIA k8s-device-plugin v0.20.0 `README.md` (`renameByDefault`), GPU feature discovery
  (`nvidia.com/gpu.product`, `nvidia.com/gpu.sharing-strategy`).
- GPUs without MIG: NVIDIA MIG user guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.instance_types import GPU_NAME
from gpugate.policies.data.mig_profiles import MIG_GPUS
from gpugate.policies.pods._amounts import requested_amounts
from gpugate.policies.sdk import quantity, scheduling
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import NAMES_ACCELERATOR
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.platform import WorkloadClass
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.scheduling import alternatives, selected, selecting_by
from gpugate.policies.sdk.workload_class import CLASS_NEEDS, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

PRODUCT: Final = "nvidia.com/gpu.product"
_MEMORY: Final = "gpugate.dev/gpu-memory"
_FAMILY: Final = "karpenter.k8s.aws/instance-family"
_NO_MIG: Final = "share these GPUs, which have no MIG, by MPS with memory limits, or use a smaller GPU for each model"
_EITHER: Final = "request a MIG slice; on GPUs without MIG (T4, A10G, L4, L40S) use MPS or a smaller GPU for each model"
_SHOWN: Final = 3
# Characters of a label's value: apimachinery v0.36.3 `validation.LabelValueMaxLength`.
_LONGEST_LABEL: Final = 63


def remedy(pod: Field, ctx: AnyContext) -> str:
    """Return the fix as text."""
    products = [_words(product) for product in selected(PRODUCT, ctx)]
    families = _families(ctx)
    capable = [gpu for gpu in MIG_GPUS if families is None or families & set(gpu.families)]
    capable = [gpu for gpu in capable if not products or any(_is(gpu.name, words) for words in products)]
    if not capable:
        return _NO_MIG
    memory = _memory(pod)
    if not memory and families is None and not products:
        return _EITHER
    profiles = {name for gpu in capable if gpu.families for name in gpu.profiles}
    fitting = [name for name in _by_memory(profiles) if _gigabytes(name) >= memory]
    if not fitting:
        return "request a whole GPU: no MIG slice has as much memory"
    return f"request a MIG slice, such as {', '.join(fitting[:_SHOWN])}"


def _families(ctx: AnyContext) -> frozenset[str] | None:
    """Return the instance families with a GPU on which the Pod may run; None if it does not select any."""
    catalogue = ctx.table(INSTANCE_TYPES)
    with_gpu = catalogue.having(GPU_NAME)
    types = 0
    for required in ctx.derived(alternatives):
        types |= scheduling.matching(required, catalogue) & with_gpu
    if types == with_gpu:
        return None
    return frozenset(catalogue.label(_FAMILY, position) for position in catalogue.positions_in(types))


def _words(product: str) -> frozenset[str]:
    """Return the words of a product label such as `NVIDIA-A100-SXM4-40GB-SHARED`; none for an invalid label."""
    return frozenset(product.split("-")) if len(product) <= _LONGEST_LABEL else frozenset()


def _is(gpu: str, words: frozenset[str]) -> bool:
    """Tell whether the words of a product label match a GPU in the table of MIG profiles."""
    sized = any(word.endswith("GB") for word in words)
    models = ({w for w in model.split() if sized or not w.endswith("GB")} for model in gpu.split(" and "))
    return any(model <= words for model in models)


def _memory(pod: Field) -> int:
    """Return the memory that the Pod declares for its model, in GB; 0 if it is missing or invalid."""
    amount = quantity.parse_or_none(pod["metadata", "annotations", _MEMORY].text) or 0
    return int(-(-amount // 10**9))


def _by_memory(profiles: Iterable[str]) -> list[str]:
    """Return profiles sorted by memory, without those with an attribute, which few GPUs support."""
    return sorted((name for name in profiles if name.endswith("gb")), key=lambda name: (_gigabytes(name), name))


def _gigabytes(profile: str) -> int:
    return int(profile.partition(".")[2].removesuffix("gb"))


_STRATEGY: Final = "nvidia.com/gpu.sharing-strategy"


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which Pods should not share a GPU by time-slicing.

    Attributes:
        classes: workload classes whose Pods are evaluated.
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
    """Report a request for a shared GPU, or else a selector for one, unless the selected nodes use MPS."""
    shared = next(_shared(pod, ctx), None)
    if shared is None or selected(_STRATEGY, ctx) == {"mps"}:
        return
    name = ctx.derived(workload_class).name
    if name in ctx.params.classes:
        message = (
            f"{shared[1]} is time-sliced: this {name} Pod has no reserved memory and no guaranteed share of the GPU"
        )
        yield Violation(shared[0].path, message, hint=remedy(pod, ctx))


def _shared(pod: Field, ctx: Context[Params]) -> Iterator[tuple[Field, str]]:
    for amount in ctx.derived(requested_amounts):
        if amount.name.endswith(".shared") and amount.amount > 0:
            yield amount.field, amount.name
    products = selected(PRODUCT, ctx)
    if products and all(product.endswith("-SHARED") for product in products):
        selector = pod["spec", "nodeSelector", PRODUCT]
        yield selector or pod["spec", "affinity"], "the GPU of the selected nodes"
