"""MIG slice asked for as an extended resource, or by annotation, without a ResourceClaim.

## Why is this bad?
A Pod that asks for `nvidia.com/mig-1g.10gb` stays Pending on nodes where the NVIDIA DRA driver hands out GPUs: there is
no device plugin, and nothing offers that resource. There a slice is had through a ResourceClaim, which takes five
fields in three places of a Pod to write.

This policy ships off. Turn it on for the namespaces whose Pods run on such nodes. From Kubernetes 1.36 on, prefer a
DeviceClass with `extendedResourceName: nvidia.com/mig-1g.10gb`: the scheduler then makes the claim, and no Pod needs to
be changed.

## Instead
A Pod that asks for `nvidia.com/mig-<profile>` asks for the same slices through claims of the template
`mig-<profile, with dashes>` of its namespace. Init containers use the claims of the app containers, because a claim is
held as long as the Pod lives. A Pod may also say what it wants:

```yaml
metadata:
  annotations:
    gpugate.dev/mig-profile: 1g.10gb
    gpugate.dev/mig-container: vllm # the first container, when absent
```

A Pod is left as it is, with a warning that says why, when the target is older than Kubernetes 1.34, when Karpenter would
have to make the node (it makes none for such claims), when the template is missing, when a container asks for two kinds
of GPUs, and for Pods of a DaemonSet.

What changes besides: quota counts the claims instead of `requests.nvidia.com/mig-*`, and queues such as Kueue have
counted the workload's template, which still names the extended resource.

## Sources
- Claims: `kubernetes/api` v0.36 `core/v1/types.go`, `resource/v1/types.go`; GA in Kubernetes 1.34.
- Device classes and profiles: kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 `deployments/helm`.
- Karpenter: `ignoreDRARequests` in core v1.14.1; aws/karpenter-provider-aws#9519.
- Extended resources through device classes: KEP-5004, on by default since Kubernetes 1.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.pods._mig_claims import PROFILE, ClaimParams, claim_intended, rewrite, slices_of
from gpugate.policies.sdk.concerns import Key
from gpugate.policies.sdk.findings import Patch, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, NAMES_ACCELERATOR, gpu_demand
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import Context, mutates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


@mutates(
    POD,
    params=ClaimParams,
    mode=Stance.OFF,
    needs=CLAIM_NEEDS,
    concerns=NAMES_ACCELERATOR | Key("metadata.annotations", (PROFILE,)),
)
def mutate(pod: Field, ctx: Context[ClaimParams]) -> Iterator[Patch | Violation | Skip]:
    """Give the Pod claims for the slices it asks for."""
    if pod["metadata", "annotations", PROFILE]:
        yield from claim_intended(pod, ctx)
    demand = ctx.derived(gpu_demand)
    slices = slices_of(demand) if ctx.params.rewrite else ()
    if slices:
        yield from rewrite(pod, slices, demand, ctx)
