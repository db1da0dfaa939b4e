"""Pod whose CPU or memory leaves the other GPUs of its node without either.

## Why is this bad?
The other GPUs of the node are paid for, and too little CPU or memory remains for Pods that could use them. Karpenter chooses an
instance type by all requests of a Pod, so a large request for CPU or memory can leave only types with several GPUs.

## Instead
Request the share of the GPUs that the Pod uses. A p4d.24xlarge has 8 GPUs, so a Pod with one GPU requests an eighth:

```yaml
resources:
  requests:
    cpu: "11"
    memory: 130Gi
  limits:
    nvidia.com/gpu: "1"
```

Or let a NodePool launch an instance type with fewer GPUs and enough CPU and memory.

The policy counts a GPU as usable if 2 CPU and 4 GiB remain for it, half of what the smallest instance type with one GPU has. It
reports a workload if more than half of the other GPUs are not usable, on every instance type that fits. These types are known in two
cases:

- All NodePools of the cluster are known, and the instance types of those that can take the Pod. For files, this needs
  `--complete-context`. The types of providers other than AWS come from `platform.catalogue`.
- The Pod selects instance types by their labels.

Bare Pods, and Pods that select nodes of a node group, are not evaluated.

## Sources
Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/nodeclaim.go` (filterInstanceTypesByRequirements: a type fits if its
allocatable resources cover all requests); Karpenter AWS provider v1.14.1 "Instance Types" (allocatable CPU and memory);
Kubernetes v1.36 `k8s.io/component-helpers/resource/helpers.go` PodRequests; aws/karpenter-provider-aws issue 5703.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._amounts import OWN_AMOUNTS
from gpugate.policies.pods._node_groups import is_bound
from gpugate.policies.pods._placement import POOL_NEED, all_types, gpu_pools, is_of_daemon_set, selected_by_name
from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, NAMES_ACCELERATOR, gpu_demand
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL, POD
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.queues import QUEUE_NEEDS
from gpugate.policies.sdk.scheduling import alternatives

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.data.instance_types import InstanceTypes, Scale
    from gpugate.policies.pods._placement import SomeTypes
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.quantity import Amount
    from gpugate.policies.sdk.scheduling import Requirements

_GPUS: Final = ("amd.com/gpu", "nvidia.com/gpu")
# The minimum for one GPU, in the catalogue's units of millicores and MiB: half of g5g.xlarge.
_LEAST: Final = {"cpu": 2000, "memory": 4096}
_UNITS: Final = {"cpu": quantity.parse("1m"), "memory": quantity.parse("1Mi")}
_SHOWN_UNITS: Final = {"cpu": (1000, "CPU"), "memory": (1024, "GiB of memory")}
_TYPE_LABELS: Final = ("node.kubernetes.io/instance-type", "karpenter.k8s.aws/instance-")


@validates(
    POD,
    mode=Stance.WARN,
    at_most=Stance.WARN,
    concerns=NAMES_ACCELERATOR,
    needs=(*CLAIM_NEEDS, *QUEUE_NEEDS, POOL_NEED),
    tables=(INSTANCE_TYPES,),
)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a template whose requests leave too little for the other GPUs of each type that fits."""
    if ctx.wrapper is None or ctx.wrapper.kind.kind in OWN_AMOUNTS or is_of_daemon_set(pod, ctx):
        return
    demand = ctx.derived(gpu_demand)
    if len(demand.resources) != 1 or demand.device_classes or demand.unresolved:
        return
    ((resource, gpus),) = demand.resources.items()
    if resource not in _GPUS or is_bound(pod, ctx):
        return
    requests = {name: _requested(name, pod) for name in _LEAST}
    pools = ctx.facts.list(NODE_POOL)
    is_complete = isinstance(pools, Known) and pools.complete
    candidates = _possible(ctx, is_complete=is_complete)
    if candidates is None or resource not in candidates.catalogue.allocatable:
        return
    catalogue = candidates.catalogue
    types = candidates.types & catalogue.allocatable[resource].at_least(gpus)
    for name, amount in requests.items():
        types &= catalogue.allocatable[name].at_least(amount)
    if not types or _usable(types, resource, gpus, requests, catalogue):
        return
    if is_complete or _selects_types(ctx):
        yield _finding(pod, types, resource, gpus, requests, catalogue)
    else:
        yield Skip("not all NodePools are known")


def _finding(
    pod: Field, types: int, resource: str, gpus: int, requests: dict[str, int], catalogue: InstanceTypes
) -> Violation:
    """Return the finding with the remaining resources of the largest type that fits."""
    scales = catalogue.allocatable
    has: dict[str, int] = {}
    for name in (*_LEAST, resource):
        has[name] = _most(scales[name], types)
        types &= scales[name].at_least(has[name])
    others = has[resource] - gpus
    name = min(_LEAST, key=lambda name: (has[name] - requests[name]) / _LEAST[name])
    unit, unit_name = _SHOWN_UNITS[name]
    left, requested = (_rounded(amount, unit) for amount in (has[name] - requests[name], requests[name]))
    message = (
        f"requests {requested} {unit_name} with {gpus} of the {has[resource]} GPUs of {next(catalogue.decode(types))}: "
        f"{left} {unit_name} remain for the other {others}"
    )
    share = has[name] * gpus // has[resource] // unit
    hint = f"request at most {share} {unit_name}, or let a NodePool launch an instance type with fewer GPUs"
    return Violation(_largest(name, pod).path, message, hint=hint)


def _usable(types: int, resource: str, gpus: int, requests: dict[str, int], catalogue: InstanceTypes) -> int:
    """Return the types on which CPU and memory remain for at least half of the other GPUs."""
    usable, scales = 0, catalogue.allocatable
    for count in scales[resource].numbers:
        some = types & scales[resource].at_least(count) & ~scales[resource].at_least(count + 1)
        used = (count - gpus + 1) // 2
        for name, least in _LEAST.items():
            some &= scales[name].at_least(requests[name] + used * least) if some else 0
        usable |= some
    return usable


def _possible(ctx: AnyContext, *, is_complete: bool) -> SomeTypes | None:
    """Return the types of the known NodePools that can launch a node for a Pod, or else those that it selects.

    If not all NodePools are known, a Pod can get all types that it selects. If a pool has no known types, no types are
    known.
    """
    selects = _selects_types(ctx)
    matches = () if selects and not is_complete else ctx.derived(gpu_pools)
    if matches:
        return all_types(matches)
    return selected_by_name(ctx) if selects else None


def _selects_types(ctx: AnyContext) -> bool:
    """Tell whether a Pod names the instance types that it can get, or labels that only they have."""
    return all(_names_types(required) for required in ctx.derived(alternatives))


def _names_types(required: Requirements) -> bool:
    return any(key.startswith(_TYPE_LABELS) and required[key].operator == "In" for key in required)


def _requested(name: str, pod: Field) -> int:
    """Return the amount that the scheduler counts for a Pod, in the units of the catalogue, without invalid quantities."""
    spec = pod["spec"]
    sidecars: Amount = 0
    peak: Amount = 0
    for container in spec["initContainers"]:
        running = sidecars + _amount(name, container)
        peak = max(peak, running)
        if container["restartPolicy"].text == "Always":
            sidecars = running
    total = max(peak, sidecars + sum(_amount(name, container) for container in spec["containers"]))
    total = _amount(name, spec) or total
    return math.ceil((total + _parsed(spec["overhead", name])) / _UNITS[name])


def _amount(name: str, owner: Field) -> Amount:
    resources = owner["resources"]
    return _parsed(resources["requests", name] or resources["limits", name])


def _parsed(field: Field) -> Amount:
    return max(quantity.parse_or_none(field.value) or 0, 0)


def _largest(name: str, pod: Field) -> Field:
    """Return the field of the container with the largest request of a resource, or that of its Pod."""
    spec = pod["spec"]
    containers = (*spec["containers"], *spec["initContainers"])
    owner = spec if _amount(name, spec) else max(containers, key=lambda container: _amount(name, container))
    resources = owner["resources"]
    return resources["requests", name] or resources["limits", name] or resources


def _most(amounts: Scale, types: int) -> int:
    """Return the largest amount that one of some types has."""
    return next(number for number in reversed(amounts.numbers) if types & amounts.at_least(number))


def _rounded(amount: int, unit: int) -> str:
    """Return an amount in a larger unit, with at most one decimal."""
    tenths = amount * 10 // unit
    return f"{tenths // 10}.{tenths % 10}" if tenths % 10 else str(tenths // 10)
