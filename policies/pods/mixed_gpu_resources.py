"""Pod that requests two kinds of NVIDIA GPU resources.

## Why is this bad?
It is undefined which device the container uses: NVIDIA's device plugin does not support whole GPUs and MIG slices, or
slices of two profiles, in one container, and CUDA sees only one of them. A GPU by device plugin and another by a
ResourceClaim come from two independent drivers.

If two containers of a Pod request two kinds, the Pod gets a warning, because only a node that offers both can run it.

## Instead
Request one kind of resource in a container, and run work that needs another in a separate Pod.

## Sources
- NVIDIA k8s-device-plugin v0.20.0 `README.md` and MIG user guide: one MIG device for a CUDA process; mixed strategy.
- ResourceClaims beside extended resources: kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, installation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data import accelerators
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import (
    CLAIM_NEEDS,
    MAY_DEMAND,
    claim_spec,
    gpu_demand,
    is_amount,
    requested_devices,
)
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import ContainerDemand, GpuDemand

_CLAIM: Final = "a ResourceClaim for GPUs"


@validates(POD, needs=CLAIM_NEEDS, concerns=MAY_DEMAND)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report containers that request several kinds, or else the first container that differs from earlier ones."""
    demand = ctx.derived(gpu_demand)
    gpu_claims = _gpu_claims(pod, demand, ctx)
    containers = [(container, _kinds(container, gpu_claims)) for container in demand.containers]
    mixing = [(container, kinds) for container, kinds in containers if len(kinds) > 1]
    for container, kinds in mixing:
        names = " and ".join(kinds)
        hint = "request one of them, and move the other to a separate Pod"
        why = "The device plugin and the DRA driver do not know of each other's GPUs." if _CLAIM in kinds else ""
        yield Violation(
            kinds[list(kinds)[-1]].path, f"{_named(container)} requests {names} together", hint=hint, why=why
        )
    if mixing:
        return
    unresolved = frozenset(demand.unresolved)
    if demand.doubt and any(kinds and not container.claims.isdisjoint(unresolved) for container, kinds in containers):
        yield demand.doubt
    requested: dict[str, Field] = {}
    for _, kinds in containers:
        for kind, field in kinds.items():
            if requested and kind not in requested:
                message = f"the containers of the Pod request {' and '.join((*requested, kind))}"
                hint = "move them to two Pods"
                why = "The Pod stays Pending if no node offers both."
                yield Violation(field.path, message, Stance.WARN, hint, why=why)
                return
        requested |= kinds


def _kinds(demand: ContainerDemand, gpu_claims: frozenset[str]) -> dict[str, Field]:
    """Return the kinds of NVIDIA resources that a container requests, with their fields. All claims are one kind."""
    kinds: dict[str, Field] = {}
    resources = demand.container["resources"]
    for name in sorted(demand.resources):
        block = "limits" if resources["limits", name] else "requests"
        if name.startswith(accelerators.IMPLICIT_CLASS_PREFIX):
            kinds[_CLAIM] = resources[block, name]
        elif name.startswith("nvidia.com/") and not is_amount(name):
            kinds[name] = resources[block, name]
    if not demand.claims.isdisjoint(gpu_claims):
        kinds[_CLAIM] = resources["claims"]
    return kinds


def _gpu_claims(pod: Field, demand: GpuDemand, ctx: AnyContext) -> frozenset[str]:
    """Return the names of the claims for GPUs; computed once per Pod, because containers share claims."""
    if not any(container.claims for container in demand.containers):
        return frozenset()
    claims = ((claim["name"].text, claim_spec(claim, ctx)) for claim in pod["spec", "resourceClaims"])
    return frozenset(name for name, spec in claims if spec is not None and _requests_gpus(spec, ctx))


def _requests_gpus(spec: Field, ctx: AnyContext) -> bool:
    return any(ctx.platform.is_accelerator_class(name) for classes in requested_devices(spec) for name in classes)


def _named(demand: ContainerDemand) -> str:
    name = demand.container["name"].text
    return f"container {name}" if name else "the container"
