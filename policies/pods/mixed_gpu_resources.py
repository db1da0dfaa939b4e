"""Pod that asks for two kinds of NVIDIA GPU resources.

## Why is this bad?
Which device the container then uses is undefined: NVIDIA's device plugin does not support whole GPUs and MIG slices, or
slices of two profiles, in one container, and CUDA sees only one of them. A GPU by device plugin and another by a
ResourceClaim come from two drivers that do not know of each other. In two containers of one Pod it is a warning: the
Pod fits only on a node that offers both.

## Instead
Ask for one kind of resource in a container, and put work that needs another into a Pod of its own.

## Sources
- NVIDIA k8s-device-plugin v0.20.0 `README.md` and MIG user guide: one MIG device for a CUDA process; mixed strategy.
- ResourceClaims beside extended resources: kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, installation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data import accelerators
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND, claim_spec, gpu_demand, requested_devices
from gpugate.policies.sdk.kinds import POD
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import ContainerDemand

_CLAIM: Final = "a ResourceClaim for GPUs"


@validates(POD, needs=CLAIM_NEEDS, concerns=MAY_DEMAND)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report containers that mix, or else the first container that differs from those before."""
    demand = ctx.derived(gpu_demand)
    containers = [(each, _kinds(each, pod, ctx)) for each in demand.containers]
    mixing = [(each, kinds) for each, kinds in containers if len(kinds) > 1]
    for each, kinds in mixing:
        names = " and ".join(kinds)
        hint = "ask for one of them; a Pod of its own for the other"
        yield Violation(kinds[list(kinds)[-1]].path, f"{_named(each)} asks for {names} at once", hint=hint)
    if mixing:
        return
    if any(kinds and each.claims & set(demand.unresolved) for each, kinds in containers):
        yield Skip(demand.doubt)
    seen: dict[str, Field] = {}
    for _, kinds in containers:
        for kind, field in kinds.items():
            if seen and kind not in seen:
                message = f"the containers of the Pod ask for {' and '.join((*seen, kind))}"
                hint = "only a node that offers both can run it: put them into two Pods"
                yield Violation(field.path, message, Stance.WARN, hint)
                return
        seen |= kinds


def _kinds(each: ContainerDemand, pod: Field, ctx: AnyContext) -> dict[str, Field]:
    """Return each kind of NVIDIA resource that a container asks for, and where; every claim is of one kind."""
    found: dict[str, Field] = {}
    resources = each.container["resources"]
    for name in sorted(each.resources):
        block = "limits" if resources["limits", name] else "requests"
        if name.startswith(accelerators.IMPLICIT_CLASS_PREFIX):
            found[_CLAIM] = resources[block, name]
        elif name.startswith("nvidia.com/"):
            found[name] = resources[block, name]
    if _claims_gpus(each, pod, ctx):
        found[_CLAIM] = resources["claims"]
    return found


def _claims_gpus(each: ContainerDemand, pod: Field, ctx: AnyContext) -> bool:
    specs = (claim_spec(c, ctx) for c in pod["spec", "resourceClaims"] if c["name"].text in each.claims)
    return any(
        ctx.platform.is_accelerator_class(name)
        for spec in specs
        if spec is not None
        for classes in requested_devices(spec)
        for name in classes
    )


def _named(each: ContainerDemand) -> str:
    name = each.container["name"].text
    return f"container {name}" if name else "the container"
