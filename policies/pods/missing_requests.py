"""Container with GPUs that requests no CPU or no memory.

## Why is this bad?
No CPU or memory is reserved for the container: Karpenter can launch the smallest instance type with enough GPUs, and other
Pods can be placed on the node until their requests fill it. While they are busy, the container gets little CPU time, and its
Pod is among the first to be evicted if memory runs short.

## Instead
Request what the server or the training needs besides the GPUs:

```yaml
resources:
  requests:
    cpu: "4"
    memory: 16Gi
  limits:
    memory: 16Gi
    nvidia.com/gpu: "1"
```

A limit counts as a request, because the API server copies it. The policy evaluates the templates of workloads. It does not
evaluate bare Pods, because they are usually short tests. Missing requests are not reported in these cases:

- A known LimitRange of the namespace adds the request.
- The workload's controller sets CPU and memory itself (KServe, Spark, Flink, Dynamo, VLLMRuntime).
- The command starts a benchmark of GPUs or their network, such as `all_reduce_perf` or `nvbandwidth`, which runs for minutes.

## Sources
Kubernetes v1.36 "Node-pressure Eviction" (Pods that use more than they request are evicted first), "Resource Management for
Pods and Containers" (CPU time is shared by requests), `pkg/apis/core/v1/defaults.go` (requests from limits),
`plugin/pkg/admission/limitranger`; Karpenter v1.14.1 "Scheduling" (instance types are chosen by resource requests); KServe
0.16 `inferenceservice-config` (1 CPU and 2Gi by default).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._amounts import OWN_AMOUNTS, requested_amounts
from gpugate.policies.pods._placement import POOL_NEED, all_types, gpu_pools, is_of_daemon_set, selected_by_name
from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.commands import runs_benchmark
from gpugate.policies.sdk.facts import Known, Need, derived
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, NAMES_ACCELERATOR
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import LIMIT_RANGE, POD
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.data.instance_types import Scale
    from gpugate.policies.pods._placement import SomeTypes
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_NAMES: Final = ("cpu", "memory")
# The catalogue has millicores and MiB.
_UNITS: Final = {"cpu": 1000, "memory": 1024}
_UNIT_NAMES: Final = {"cpu": "CPU", "memory": "GiB"}
_WHY: Final = {
    ("cpu",): "No CPU is reserved for it: while other containers on the node are busy, it gets little CPU time.",
    (
        "memory",
    ): "No memory is reserved for it: if the node runs short of memory, its Pod is among the first to be evicted.",
    _NAMES: (
        "No CPU or memory is reserved for it: while other containers on the node are busy, it gets little CPU time, and "
        "if the node runs short of memory, its Pod is among the first to be evicted."
    ),
}


@validates(
    POD,
    mode=Stance.WARN,
    at_most=Stance.WARN,
    concerns=NAMES_ACCELERATOR,
    needs=(*CLAIM_NEEDS, Need(LIMIT_RANGE, ("spec.limits",)), POOL_NEED),
    tables=(INSTANCE_TYPES,),
)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report each container of a template that requests accelerators, but no CPU or no memory."""
    if ctx.wrapper is None or ctx.wrapper.kind.kind in OWN_AMOUNTS or is_of_daemon_set(pod, ctx):
        return
    ranges = ctx.facts.list(LIMIT_RANGE, ctx.request.namespace)
    added = derived(ranges, _added, ctx) if isinstance(ranges, Known) else frozenset()
    with_gpus = {amount.container.path: amount.name for amount in requested_amounts(pod, ctx) if amount.amount > 0}
    for container in pod["spec", "containers"]:
        resource = with_gpus.get(container.path)
        if resource is None:
            continue
        missing = tuple(name for name in _NAMES if name not in added and not _requests(name, container, pod))
        if missing and not ctx.derived(runs_benchmark):
            message = f"container {container['name'].text} is missing requests {', '.join(missing)}"
            hint = f"add requests for {' and '.join(missing)}{_share(resource, missing, ctx)}"
            yield Violation(container["resources"].path, message, hint=hint, why=_WHY[missing])


def _added(ranges: Known, _: AnyContext) -> frozenset[str]:
    """Return the requests that the LimitRanges of a namespace add to containers, including default limits."""
    return frozenset(
        name
        for limit_range in ranges.items
        for limit in limit_range["spec", "limits"].having("type", "Container")
        for name in (*limit["default"].mapping, *limit["defaultRequest"].mapping)
    )


def _requests(name: str, container: Field, pod: Field) -> bool:
    """Tell whether a container, or its Pod for all containers (`spec.resources`), requests a resource."""
    for resources in (container["resources"], pod["spec", "resources"]):
        blocks = (resources["requests"], resources["limits"])
        written = next((block[name] for block in blocks if name in block.mapping), None)
        if written is not None and _is_positive(written):
            return True
    return False


def _is_positive(written: Field) -> bool:
    """Tell whether a quantity is above zero, or invalid, which the API server rejects."""
    amount = quantity.parse_or_none(written.value)
    return amount is None or amount > 0


def _share(resource: str, names: tuple[str, ...], ctx: AnyContext) -> str:
    """Return the CPU and memory per GPU on every type that the Pod can get; empty if unknown."""
    candidates = ctx.derived(_types)
    gpus = candidates.catalogue.allocatable.get(resource) if candidates else None
    if candidates is None or gpus is None:
        return ""
    catalogue, types = candidates.catalogue, candidates.types & candidates.catalogue.offering(resource)
    # All types of EC2 are those of a Pod that selects none.
    if not types or (types == catalogue.offering(resource) and catalogue is ctx.table(INSTANCE_TYPES)):
        return ""
    counts = [(count, types & gpus.at_least(count) & ~gpus.at_least(count + 1)) for count in gpus.numbers]
    shares = " and ".join(
        f"{min(_least(catalogue.allocatable[name], of) // count for count, of in counts if of) // _UNITS[name]} {_UNIT_NAMES[name]}"
        for name in names
    )
    return f": up to {shares} for each GPU fit on every instance type that the Pod can get"


def _types(_pod: Field, ctx: AnyContext) -> SomeTypes | None:
    """Return the types of the known NodePools that can launch a node for a Pod, or else those that it selects."""
    matches = ctx.derived(gpu_pools)
    return all_types(matches) if matches else selected_by_name(ctx)


def _least(amounts: Scale, types: int) -> int:
    """Return the smallest amount among some types, by bisection: fewer types have a larger number."""
    index = bisect_left(amounts.numbers, True, key=lambda number: bool(types & ~amounts.at_least(number)))  # noqa: FBT003 -- a key
    return amounts.numbers[index - 1] if index else 0
