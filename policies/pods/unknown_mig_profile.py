"""MIG slice that no GPU offers, or that the container cannot use.

## Why is this bad?
The Pod stays Pending: a resource such as `nvidia.com/mig-1g10gb` looks valid, but no node offers it. Each GPU
supports only a few profiles.

These are warnings:

- A profile of a GPU that EC2 does not have, if nodes are EC2 instances (`platform.ec2`, or gpugate finds a NodePool
  of EC2).
- More than one slice in a container, because a CUDA process sees only one.
- A slice if the GPU operator's MIG strategy is not `mixed`: it then offers slices as `nvidia.com/gpu`, and no node
  offers `nvidia.com/mig-*`.

## Instead
Write the profile as NVIDIA does: compute slices, a point, memory, such as `nvidia.com/mig-1g.10gb` (A100 80GB, H100)
or `nvidia.com/mig-1g.5gb` (A100 40GB). For more memory, use a larger profile instead of two slices.

## Sources
- Profiles: NVIDIA gpu-operator v26.7.0 `assets/state-mig-manager/0400_configmap.yaml`, mig-parted v0.15.0.
- Names and strategies: NVIDIA k8s-device-plugin v0.20.0 `README.md`; one device for a process: NVIDIA MIG user guide.
- Attribute `profile`: NVIDIA DRA driver v0.4.1 `cmd/gpu-kubelet-plugin/deviceinfo.go`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.mig_profiles import gpus_with, near_miss, profile_of, resource_of
from gpugate.policies.pods._amounts import requested_amounts
from gpugate.policies.sdk.facts import Known, Need
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.gpu_demand import (
    NAMES_ACCELERATOR,
    alternatives,
    claim_spec_of,
    device_requests,
    readable_cel,
)
from gpugate.policies.sdk.node_pools import PROVIDER_NEED, is_on_ec2
from gpugate.policies.sdk.objects import CLUSTER_POLICY, POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.pods._amounts import RequestedAmount
    from gpugate.policies.sdk.field import Field

_SHARED: Final = ".shared"
_CHOSEN: Final = re.compile(r"""\.profile\s*==\s*(?P<quote>['"])(?P<profile>[^'"]{1,40})(?P=quote)""")


_NEEDS: Final = (Need(CLUSTER_POLICY, ("spec.mig.strategy",)), PROVIDER_NEED)


@validates(POD, needs=_NEEDS, concerns=NAMES_ACCELERATOR)
def check_pod(_pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report slices that do not exist, several in a container, and those that the cluster does not offer."""
    offered = False
    for amount in ctx.derived(requested_amounts):
        profile = profile_of(amount.name)
        if profile is None or amount.amount <= 0:
            continue
        yield from _unknown(amount.field, profile, _renamed(amount, profile), ctx)
        if amount.amount > 1:
            message = f"{amount.amount} x {profile} in one container: a CUDA process sees one slice"
            hint = "request one slice of a larger profile, or run several Pods"
            why = "The other slices are allocated to the container, and stay unused."
            yield Violation(amount.field.path, message, Stance.WARN, hint, why=why)
        if not offered:
            offered = True
            yield from _not_offered(amount.field, ctx)


@validates(RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, needs=_NEEDS)
def check_claim(claim: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report a selector for a profile that does not exist."""
    for request in device_requests(claim_spec_of(claim, ctx.request.kind.kind)):
        for ask in alternatives(request):
            if ask["deviceClassName"].text.endswith("nvidia.com"):
                for selector in ask["selectors"]:
                    expression = selector["cel", "expression"]
                    for chosen in _CHOSEN.finditer(readable_cel(expression)):
                        yield from _unknown(expression, chosen["profile"], _rewritten(expression, chosen), ctx)


def _unknown(field: Field, profile: str, fix: Patches | None, ctx: AnyContext) -> Iterator[Violation]:
    gpus = gpus_with(profile)
    if not gpus:
        meant = near_miss(profile)
        hint = f"write {meant}" if meant else "write a profile such as 1g.10gb (A100 80GB, H100) or 1g.5gb (A100 40GB)"
        message = f"no GPU supports the profile {_printable(profile)}"
        yield Violation(
            field.path, message, hint=hint, fix=fix, why="No node offers such a slice: the Pod stays Pending."
        )
    elif not any(gpu.families for gpu in gpus) and ctx.derived(is_on_ec2):
        names = " or ".join(gpu.name for gpu in gpus)
        message = f"{profile} is a slice of {names}, which no EC2 instance type has"
        why = "Nodes on EC2 do not offer such a slice: there the Pod stays Pending."
        yield Violation(field.path, message, Stance.WARN, "use a profile of a GPU that your nodes have", why=why)


def _renamed(amount: RequestedAmount, profile: str) -> Patches | None:
    meant = near_miss(profile)
    if meant is None:
        return None
    new = resource_of(meant) + (_SHARED if amount.name.endswith(_SHARED) else "")
    blocks = [amount.container["resources", name] for name in ("limits", "requests")]
    patches = []
    for block in (block for block in blocks if block[amount.name] and not block[new]):
        patches.append(Patch("set", block[new].path, block[amount.name].value, f"requests {new}, a valid profile"))
        patches.append(Patch("remove", block[amount.name].path, None, f"removes {amount.name}, which does not"))
    return Patches(tuple(patches)) if patches else None


def _rewritten(expression: Field, chosen: re.Match[str]) -> Patches | None:
    meant = near_miss(chosen["profile"])
    if meant is None:
        return None
    start, end = chosen.span("profile")
    text = expression.text[:start] + meant + expression.text[end:]
    return Patches((Patch("set", expression.path, text, f"chooses the profile {meant}, which exists"),))


def _not_offered(field: Field, ctx: AnyContext) -> Iterator[Violation]:
    fact = ctx.facts.list(CLUSTER_POLICY)
    for policy in fact.items if isinstance(fact, Known) else ():
        strategy = policy["spec", "mig", "strategy"].text
        if strategy in {"single", "none"}:
            message = f"the GPU operator's MIG strategy is {strategy}: no node offers {field.path[-1]}"
            hint = "request nvidia.com/gpu, or set mig.strategy: mixed"
            why = "With this strategy the device plugin offers slices as nvidia.com/gpu, so the Pod stays Pending."
            yield Violation(field.path, message, Stance.WARN, hint, why=why)
            return


def _printable(profile: str) -> str:
    return profile if len(profile) <= 20 else f"{profile[:20]}..."
