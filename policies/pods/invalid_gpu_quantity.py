"""Container that asks for a number of GPUs that nobody can give.

## Why is this bad?
The Pod never runs. GPUs are whole: the API server refuses half a GPU, a request without a limit and a request that is
not the limit, but where a workload is a custom resource it sees that only when the first Pod is made. More GPUs than
the largest instance type has leave the Pod Pending for ever.

## Instead
Write one whole number as the limit; the request follows from it. For a part of a GPU, ask for a MIG slice.

```yaml
resources:
  limits:
    nvidia.com/gpu: "1"
```

A Pod of several containers needs the GPUs of all of them on one node.

## Sources
- Extended resources: `pkg/apis/core/validation/validation.go` ValidateContainerResource, Kubernetes v1.36.
- Largest amounts: aws/karpenter-provider-aws v1.14.1, instance types; for MIG slices the NVIDIA gpu-operator v26.7.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from gpugate.policies.data import mig_profiles
from gpugate.policies.pods._amounts import asked
from gpugate.policies.sdk.findings import Patch, Patches, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, NAMES_ACCELERATOR, gpu_demand
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.pods._amounts import Asked
    from gpugate.policies.sdk.field import Field


class Params(PolicyParams, frozen=True, kw_only=True):
    """How much a Pod may ask for.

    Attributes:
        max_per_pod: resource -> the most of it that one Pod may ask for, in place of what the largest EC2 instance type
            offers.
    """

    max_per_pod: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = msgspec.field(default_factory=dict)


@validates(POD, params=Params, needs=CLAIM_NEEDS, tables=(INSTANCE_TYPES,), concerns=NAMES_ACCELERATOR)
def check(_pod: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report amounts that the API server refuses, and those that no node has."""
    amounts = ctx.derived(asked)
    for each in amounts:
        yield from _refused(each)
    for name, count in ctx.derived(gpu_demand).resources.items():
        most = ctx.params.max_per_pod.get(name, _most_on_a_node(name, ctx))
        if most is not None and count > most:
            largest = max((each for each in amounts if each.name == name), key=lambda each: each.amount)
            limit = "may ask for" if name in ctx.params.max_per_pod else "can get on any EC2 instance type"
            message = f"the Pod asks for {count} {name}, {most} is the most that it {limit}"
            yield Violation(largest.field.path, message, hint="ask for less, or spread the work over several Pods")


def _refused(each: Asked) -> Iterator[Violation]:
    resources = each.container["resources"]
    for block, amount in (("limits", each.limit), ("requests", each.request)):
        if amount is None or (isinstance(amount, int) and amount >= 0):
            continue
        path = resources[block, each.name].path
        if amount < 0:
            yield Violation(path, f"{each.name}: {amount} is negative", hint="write a whole number, or leave it out")
            return
        hint = "write a whole number"
        if each.name == "nvidia.com/gpu":
            hint += "; for a part of a GPU ask for a MIG slice, such as nvidia.com/mig-1g.10gb"
        yield Violation(path, f"{each.name}: {float(amount):g} is a fraction, and devices are whole", hint=hint)
        return
    request = resources["requests", each.name]
    if each.limit is None:
        patch = Patch("set", resources["limits", each.name].path, request.value, f"limits {each.name} to the request")
        message = f"requests {each.name} without a limit, which Kubernetes refuses"
        yield Violation(request.path, message, hint="write it in limits", fix=Patches((patch,), safe=True))
    elif each.request is not None and each.request != each.limit:
        message = f"requests {each.request} {each.name} and limits it to {each.limit}: both must be the same"
        yield Violation(request.path, message, hint="write the number of GPUs in limits alone")


def _most_on_a_node(name: str, ctx: Context[Params]) -> int | None:
    scale = ctx.table(INSTANCE_TYPES).allocatable.get(name)
    if scale:
        return scale.numbers[-1]
    profile = None if name.endswith(mig_profiles.SHARED_SUFFIX) else mig_profiles.profile_of(name)
    return mig_profiles.most_per_gpu(profile or "") * mig_profiles.MOST_GPUS_PER_NODE or None
