"""Pod that tolerates the taint of GPU nodes and asks for no GPU.

## Why is this bad?
It takes CPU and memory on the dearest nodes there are, so that Pods that need their GPUs no longer fit, and it keeps an
otherwise empty GPU node alive. A CPU copy of a GPU manifest with the quantity 0 is such a Pod too: the API server's
ExtendedResourceToleration plugin, which EKS turns on, tolerates the taint for every quantity, also 0.

## Instead
Delete the toleration, and the quantity of 0 with it; a Pod that does need a GPU asks for it. Agents that run on every
node belong in a DaemonSet: its Pods are left alone.

## Sources
- ExtendedResourceToleration: `plugin/pkg/admission/extendedresourcetoleration/admission.go`, Kubernetes v1.36.
- Taints and tolerations: `k8s.io/api/core/v1/toleration.go`, v0.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.pods.placement.daemon_sets import OF_DAEMON_SET, is_of_daemon_set
from gpugate.policies.pods.placement.gpu_nodes import NAMES_GPU_TAINT, gpu_tolerations
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, gpu_demand
from gpugate.policies.sdk.kinds import POD
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


@validates(POD, needs=CLAIM_NEEDS, concerns=NAMES_GPU_TAINT & ~OF_DAEMON_SET)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report the first toleration; one without a key, which tolerates everything, is another policy's business."""
    tolerations = [t for t in ctx.derived(gpu_tolerations) if t["key"].text]
    if not tolerations or is_of_daemon_set(pod, ctx):
        return
    demand = ctx.derived(gpu_demand)
    if demand:
        return
    if demand.unresolved:
        yield Skip(demand.doubt)
        return
    keys = ", ".join(dict.fromkeys(t["key"].text for t in tolerations))
    asks = f"asks for 0 {min(demand.zero)}" if demand.zero else "asks for no GPU"
    yield Violation(
        tolerations[0].path,
        f"tolerates {keys} but {asks}: it would occupy a GPU node",
        hint="delete the toleration, or ask for the GPU; an agent for every node belongs in a DaemonSet",
        fix=Patches((*_without_zeros(pod, demand.zero), *_without(tolerations))),
    )


def _without(tolerations: list[Field]) -> Iterator[Patch]:
    # From the end, so that the places of those before stay the same.
    for toleration in reversed(tolerations):
        key = toleration["key"].text
        yield Patch("remove", toleration.path, None, f"removes the toleration of {key}: the Pod asks for no GPU")


def _without_zeros(pod: Field, names: frozenset[str]) -> Iterator[Patch]:
    for container in (*pod["spec", "initContainers"], *pod["spec", "containers"]):
        for block in ("limits", "requests"):
            for name, amount in container["resources", block].items():
                if name in names:
                    yield Patch("remove", amount.path, None, f"removes {name}: the toleration comes with any quantity")
