"""Container with an invalid or unavailable number of GPUs.

## Why is this bad?
The API server refuses the Pod, or no node can run it. The API server refuses half a GPU, a GPU request without a
limit, and a request that differs from the limit. In a custom resource, such as a PyTorchJob, the error appears only
when its Pods are created.

A Pod with more GPUs than the largest instance type stays Pending. If nodes are EC2 instances (`platform.ec2`, or
gpugate finds a NodePool of EC2), the maximum is that of the largest EC2 instance type. Elsewhere the maximum is that of
the platform's own instance types, if the policy file says that they are all (`platform.catalogue.complete`). Without
them a Pod with more than 16 GPUs gets a warning.

## Instead
Write one whole number as the limit; the request follows from it. For a part of a GPU, request a MIG slice.

```yaml
resources:
  limits:
    nvidia.com/gpu: "1"
```

All containers of a Pod get their GPUs on one node.

## Sources
- Extended resources: `pkg/apis/core/validation/validation.go` ValidateContainerResource, Kubernetes v1.36.
- Largest amounts: aws/karpenter-provider-aws v1.14.1, instance types; for MIG slices the NVIDIA gpu-operator v26.7.0; 16
  GPUs: Google Cloud documentation "GPU machine types" (a2-megagpu-16g), NVIDIA DGX-2 user guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.data import mig_profiles
from gpugate.policies.data.accelerators import IMPLICIT_CLASS_PREFIX
from gpugate.policies.pods._amounts import requested_amounts
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, NAMES_ACCELERATOR, gpu_demand, is_amount
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, PROVIDER_NEED, is_on_ec2
from gpugate.policies.sdk.node_types import own_types
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.pods._amounts import RequestedAmount
    from gpugate.policies.sdk.field import Field


# Resources that only EC2 offers.
_OF_AWS: Final = "aws.amazon.com/"
# Whole devices, and their maximum in one machine: a2-megagpu-16g of Google Cloud, NVIDIA DGX-2.
_WHOLE: Final = frozenset({"nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi"})
_MOST_ANYWHERE: Final = 16
_NOT_OFFERED: Final = "no instance type of the platform offers"
# An amount above this multiple of the largest known machine exists on no machine.
_BEYOND: Final = 16


class Params(PolicyParams, frozen=True, kw_only=True):
    """How much a Pod may ask for.

    Attributes:
        max_per_pod: how much one Pod may request, by resource. Without an entry, the largest EC2 instance type or machine
            is the maximum.
    """

    max_per_pod: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = msgspec.field(default_factory=dict)


@validates(
    POD, params=Params, needs=(*CLAIM_NEEDS, PROVIDER_NEED), tables=(INSTANCE_TYPES,), concerns=NAMES_ACCELERATOR
)
def check(_pod: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report amounts that the API server rejects, and those that no node has."""
    amounts = ctx.derived(requested_amounts)
    for amount in amounts:
        yield from _refused(amount)
    for name, count in ctx.derived(gpu_demand).resources.items():
        excess = _above(name, count, ctx)
        if excess:
            message, at_most, why = excess
            largest = max((amount for amount in amounts if amount.name == name), key=lambda amount: amount.amount)
            hint = "request fewer, or spread the work over several Pods"
            if message.startswith(_NOT_OFFERED):
                hint = "request an accelerator that an instance type of the platform offers"
            yield Violation(largest.field.path, message, at_most, hint, why=why)


def _above(name: str, count: int, ctx: Context[Params]) -> tuple[str, Stance, str] | None:
    """Return the message, the highest stance and the reason for an amount above the maximum; None if it is valid."""
    configured = ctx.params.max_per_pod.get(name)
    most: int | None
    why = "No node can run the Pod, so it stays Pending."
    if configured is not None:
        most, limit, at_most = configured, "for one Pod", Stance.ENFORCE
        why = "The policy file sets this maximum for one Pod."
    elif ctx.derived(is_on_ec2) or name.startswith(_OF_AWS):
        most, limit, at_most = _most_on_ec2(name, ctx), "of any EC2 instance type", Stance.ENFORCE
    elif (own := own_types(ctx)) is not None and own.complete:
        most, limit = _most_of_platform(name, own, ctx), "of any instance type of the platform"
        # Nodes have the current types, and a list contains those that the platform plans to use.
        at_most = Stance.WARN if ctx.platform.catalogue.from_nodes else Stance.ENFORCE
    else:
        most, limit, at_most = _most_anywhere(name), "of any known machine", Stance.WARN
        why = "No known machine can run the Pod, so it may stay Pending."
        if most is not None and count > most * _BEYOND:
            at_most, why = Stance.ENFORCE, "No machine can run the Pod, so it stays Pending."
    if most is None or count <= most:
        return None
    if not most and configured is None:
        return f"{_NOT_OFFERED} {name}", at_most, why
    return f"the Pod requests {count} {name} (maximum {limit}: {most})", at_most, why


def _refused(amount: RequestedAmount) -> Iterator[Violation]:
    resources = amount.container["resources"]
    for block, number in (("limits", amount.limit), ("requests", amount.request)):
        if number is None or (isinstance(number, int) and number >= 0):
            continue
        path = resources[block, amount.name].path
        if number < 0:
            yield Violation(
                path, f"{amount.name}: {number} is negative", hint="write a whole number, or remove the resource"
            )
            return
        hint = "write a whole number"
        if amount.name == "nvidia.com/gpu":
            hint += "; for a part of a GPU, request a MIG slice such as nvidia.com/mig-1g.10gb"
        yield Violation(path, f"{amount.name}: {float(number):g} is a fraction, but devices are whole", hint=hint)
        return
    request = resources["requests", amount.name]
    if amount.limit is None:
        patch = Patch(
            "set", resources["limits", amount.name].path, request.value, f"limits {amount.name} to the request"
        )
        message = f"requests {amount.name} without a limit, which Kubernetes refuses"
        yield Violation(request.path, message, hint="add it to limits", fix=Patches((patch,), safe=True))
    elif amount.request is not None and amount.request != amount.limit:
        message = f"requests {amount.request} {amount.name} but limits it to {amount.limit}: both must be equal"
        yield Violation(request.path, message, hint="write the number of GPUs only in limits")


def _most_on_ec2(name: str, ctx: Context[Params]) -> int | None:
    scale = ctx.table(INSTANCE_TYPES).allocatable.get(name)
    return scale.numbers[-1] if scale else _slices(name, mig_profiles.MOST_GPUS_PER_NODE)


def _most_of_platform(name: str, own: InstanceTypes, ctx: Context[Params]) -> int | None:
    """Return the largest amount of any type of the platform; None if it is unknown.

    It is unknown for names under which DRA may offer devices, and for amounts that schedulers of shared GPUs count.
    Another policy, `pods/unknown-mig-profile`, reports slices that no GPU has.
    """
    scale = own.allocatable.get(name)
    if scale:
        return scale.numbers[-1]
    profile = mig_profiles.profile_of(name)
    if is_amount(name) or (profile is not None and not mig_profiles.gpus_with(profile)):
        return None
    is_of_dra = own.has_devices or name.startswith(IMPLICIT_CLASS_PREFIX) or not ctx.platform.is_accelerator(name)
    return None if is_of_dra else 0


def _most_anywhere(name: str) -> int | None:
    return _MOST_ANYWHERE if name in _WHOLE else _slices(name, _MOST_ANYWHERE)


def _slices(name: str, gpus: int) -> int | None:
    profile = None if name.endswith(mig_profiles.SHARED_SUFFIX) else mig_profiles.profile_of(name)
    return mig_profiles.most_per_gpu(profile or "") * gpus or None
