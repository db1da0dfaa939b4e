"""Pod that tolerates the taint of GPU nodes and requests no GPU.

## Why is this bad?
The Pod uses CPU and memory of a GPU node, so Pods that need its GPUs may not fit, and Karpenter cannot remove the
otherwise empty node. GPU nodes are the most expensive nodes of a cluster.

A copy of a GPU manifest with the quantity 0 is reported too. The API server's ExtendedResourceToleration plugin,
which EKS enables, adds the toleration for every quantity, even for 0.

A ResourceClaim counts as a GPU request if it is for GPUs. If gpugate does not find the claim, it counts if a
container uses it. A claim that does not exist in the cluster requests nothing, but the Pod gets only a warning,
because the claim may be created after the Pod.

A Pod whose `nodeName` names a GPU node is reported even without a toleration, because `nodeName` bypasses taints. If
gpugate does not find the node, the policy is not evaluated, because the node may have no GPU.

A Pod that uses GPUs without a request, by its runtime class, a variable or device files, is reported only by
`pods/hidden-gpu-access`.

## Instead
Delete the toleration and the quantity of 0. If the Pod needs a GPU, request it. Run agents for every node as a
DaemonSet, whose Pods are not reported. Select a node by its labels instead of by `nodeName`.

## Sources
- ExtendedResourceToleration: `plugin/pkg/admission/extendedresourcetoleration/admission.go`, Kubernetes v1.36.
- Taints and tolerations: `k8s.io/api/core/v1/toleration.go`, v0.36.
- `nodeName` and taints: Kubernetes v1.36 `pkg/kubelet/lifecycle/predicate.go`.
- Allocation of claims that no container uses: Kubernetes v1.36 `pkg/scheduler/framework/plugins/dynamicresources`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods import _hidden_access
from gpugate.policies.pods._placement import (
    NAMES_GPU_TAINT,
    NAMES_NODE,
    OF_DAEMON_SET,
    REACH_NEEDS,
    gpu_tolerations,
    is_of_daemon_set,
    reach_by_name,
)
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, gpu_demand
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import GpuDemand

_HINT: Final = "delete the toleration, or request the GPU; run an agent for every node as a DaemonSet"
_CONCERNS: Final = (NAMES_GPU_TAINT | NAMES_NODE) & ~OF_DAEMON_SET


@validates(POD, needs=(*CLAIM_NEEDS, *REACH_NEEDS), tables=(INSTANCE_TYPES,), concerns=_CONCERNS)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report the first toleration, or else the node. Another policy reports tolerations without a key."""
    tolerations = [t for t in ctx.derived(gpu_tolerations) if t["key"].text]
    by_name = None if tolerations else reach_by_name(pod, ctx)
    if not (tolerations or by_name) or is_of_daemon_set(pod, ctx):
        return
    demand = ctx.derived(gpu_demand)
    if demand:
        return
    if demand.doubt and _uses(demand, demand.unknown):
        yield demand.doubt
        return
    if by_name is Stance.WARN:
        yield Skip(f"it is unknown whether node {pod['spec', 'nodeName'].text} has GPUs")
        return
    if _hidden_access.uses_gpus(pod):
        return
    if tolerations:
        keys = ", ".join(dict.fromkeys(t["key"].text for t in tolerations))
        # A claim may be created after its Pod, as by Helm, and the Pod waits for it.
        waits = _uses(demand, demand.absent)
        yield Violation(
            tolerations[0].path,
            f"tolerates {keys} but {_asks(demand)}: it would occupy a GPU node",
            Stance.WARN if waits else Stance.ENFORCE,
            "create the ResourceClaim before the Pod" if waits else _HINT,
            None if waits else Patches((*_without_zeros(pod, demand.zero), *_without(tolerations))),
        )
    else:
        yield Violation(
            pod["spec", "nodeName"].path,
            f"bypasses the taints of GPU nodes with nodeName but {_asks(demand)}: it would occupy a GPU node",
            Stance.ENFORCE,
            "select the node by its labels, so that the scheduler respects its taints",
        )


def _asks(demand: GpuDemand) -> str:
    if demand.zero:
        return f"requests 0 {min(demand.zero)}"
    if demand.absent:
        return f"its claim {demand.absent[0]} does not exist, so it requests no GPU"
    return "none of its containers uses a GPU" if demand.unknown else "requests no GPU"


def _uses(demand: GpuDemand, claims: tuple[str, ...]) -> bool:
    """Tell whether a container uses one of some claims."""
    names = frozenset(claims)
    return any(not container.claims.isdisjoint(names) for container in demand.containers)


def _without(tolerations: list[Field]) -> Iterator[Patch]:
    # In reverse order, so that the indices of earlier elements do not change.
    for toleration in reversed(tolerations):
        key = toleration["key"].text
        yield Patch("remove", toleration.path, None, f"removes the toleration of {key}: the Pod requests no GPU")


def _without_zeros(pod: Field, names: frozenset[str]) -> Iterator[Patch]:
    for container in (*pod["spec", "initContainers"], *pod["spec", "containers"]):
        for block in ("limits", "requests"):
            for name, amount in container["resources", block].items():
                if name in names:
                    yield Patch(
                        "remove",
                        amount.path,
                        None,
                        f"removes {name}: the API server adds the toleration for any quantity",
                    )
