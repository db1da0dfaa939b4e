"""Distributed job on EC2 types with EFA whose Pods request no EFA interface.

## Why is this bad?
The Pods communicate over TCP, and the GPUs wait for the network. Nothing reports it: NCCL chooses TCP if it finds no EFA
interface, and the job ends later. On the same nodes an all-reduce over TCP was measured at 3 GB/s, and over EFA at 489 GB/s.

## Instead
Request the interfaces next to the GPUs, all of them if a Pod takes a whole node:

```yaml
resources:
  limits:
    nvidia.com/gpu: "8"
    vpc.amazonaws.com/efa: "32"    # p5.48xlarge
```

Nodes need the EFA device plugin, the Pods an image with the EFA libraries and the NCCL plugin of AWS, and the nodes a security group
that allows all traffic within itself. Karpenter creates the interfaces of a node for Pods that request them. The nodes of a node
group have them if its launch template does.

A job is reported if all of these are true:

- Its Pods work only together and need several nodes, as for `pods/partial-gang`.
- All EC2 types on which the Pods fit have EFA: the types that they select, or those of all known NodePools for them.
- No Pod requests another extended resource than accelerators, has a claim of another device, is privileged or uses
  `NCCL_NET` or `FI_PROVIDER`.

## Sources
EKS user guide "Run machine learning training on Amazon EKS with Elastic Fabric Adapter" and "Manage EFA devices on Amazon EKS"
(2026-11); Karpenter AWS provider v1.14.1 "Instance Types" (`vpc.amazonaws.com/efa` of each type), `pkg/providers/launchtemplate`
(network interfaces for requested EFA); NVIDIA/aicr issue 2683 (measurement); aws/sagemaker-hyperpod-cli issue 306.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._distributed import KINDS, selected_types, spread, workers
from gpugate.policies.pods._node_groups import is_bound
from gpugate.policies.pods._placement import POOL_NEED, all_types, pools_for
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.queues import QUEUE_NEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.pods._distributed import Workers
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_EFA: Final = "vpc.amazonaws.com/efa"
# Variables that choose the network of NCCL and libfabric.
_CHOOSE_NETWORK: Final = frozenset({"FI_PROVIDER", "NCCL_NET"})


@validates(
    *KINDS,
    mode=Stance.WARN,
    at_most=Stance.WARN,
    needs=(*CLAIM_NEEDS, *QUEUE_NEEDS, POOL_NEED),
    tables=(INSTANCE_TYPES,),
)
def check(job: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report a job on several nodes whose Pods request accelerators but no EFA."""
    if any(job["metadata", "ownerReferences"]):
        return
    groups = workers(job, ctx)
    beyond = spread(groups)
    if beyond is None or any(_may_have_another_network(group) for group in groups):
        return
    interfaces = [_interfaces(group, beyond.name) for group in beyond.workers]
    if not all(interfaces):
        return
    largest = beyond.largest
    container = next(demand.container for demand in largest.demand.containers if beyond.name in demand.resources)
    numbers = frozenset[int]().union(*interfaces)
    whole = len(numbers) == 1 and all(_takes_whole_nodes(group, beyond.name) for group in beyond.workers)
    number = f': "{min(numbers)}"' if whole else ""
    yield Violation(
        container["resources", "limits"].path,
        f"{beyond} request no {_EFA}: they communicate over TCP",
        hint=f"request {_EFA}{number} next to {beyond.name}",
    )


def _may_have_another_network(group: Workers) -> bool:
    """Tell whether the Pods of a template have an interface that is not requested as EFA, or choose their network."""
    pod = group.ctx.subject
    claims = sum(1 for _ in pod["spec", "resourceClaims"])
    return claims > len(group.demand.device_classes) or any(
        _has_another_network(container, group) for container in pod["spec", "containers"]
    )


def _has_another_network(container: Field, group: Workers) -> bool:
    resources = container["resources"]
    names = {*resources["limits"].mapping, *resources["requests"].mapping}
    return bool(
        any("/" in name and not group.ctx.platform.is_accelerator(name) for name in names)
        or container["securityContext", "privileged"].value is True
        or any(variable["name"].text in _CHOOSE_NETWORK for variable in container["env"])
    )


def _interfaces(group: Workers, name: str) -> frozenset[int]:
    """Return the numbers of EFA interfaces of the nodes for a template's Pods; empty if a node may have none."""
    ctx = group.ctx
    catalogue = ctx.table(INSTANCE_TYPES)
    scale, efa = catalogue.allocatable[name], catalogue.allocatable[_EFA]
    fitting = scale.at_least(group.demand.resources[name])
    types = _types(group)
    if not types & fitting or types & fitting & ~efa.at_least(1):
        return frozenset()
    return frozenset(
        number
        for number, more in zip(efa.numbers, (*efa.numbers[1:], None), strict=True)
        if types & fitting & efa.at_least(number) & ~(efa.at_least(more) if more else 0)
    )


def _takes_whole_nodes(group: Workers, name: str) -> bool:
    more = group.ctx.table(INSTANCE_TYPES).allocatable[name].at_least(group.demand.resources[name] + 1)
    return not _types(group) & more


def _types(group: Workers) -> int:
    """Return the EC2 types on which the Pods of a template may run; 0 if they may run elsewhere."""
    pod, ctx = group.ctx.subject, group.ctx
    selected = selected_types(ctx)
    if selected is None:
        return 0
    matches = () if is_bound(pod, ctx) else tuple(pools_for(pod, group.demand, ctx))
    if not matches:
        return selected
    launched = all_types(matches)
    return launched.types if launched is not None and launched.catalogue is ctx.table(INSTANCE_TYPES) else 0
