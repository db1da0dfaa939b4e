"""GPU Pod that is bound to a node by `nodeName`, past the scheduler.

## Why is this bad?
The Pod fails if the node's GPUs are in use, because no scheduler chooses a node for it. Taints with the effect NoSchedule do not keep
it off, and Karpenter launches no node for it. The controller of a failed Pod creates the next one for the same node.

## Instead
Let the scheduler choose, by the label of the node or, better, by what the node has:

```yaml
spec:
  nodeSelector:
    karpenter.k8s.aws/instance-gpu-name: h100    # or kubernetes.io/hostname for one node
  tolerations:
    - key: nvidia.com/gpu
      operator: Exists
      effect: NoSchedule
```

The scheduler writes `nodeName` too, so only Pods that are created with it are reported. Not reported are:

- Pods of DaemonSets and static Pods. At admission, the sender decides whether a Pod is one of these.
- Pods that the ServiceAccount of another controller creates. The validator of NVIDIA's GPU operator runs a GPU Pod on each node so.
- Pods without a GPU, which `pods/gpu-node-squatter` reports.

In mode `enforce`, the Pods of a Deployment, StatefulSet or Job are denied, and the workload itself gets a warning at admission.
Workloads of other controllers, such as KubeRay, get at most a warning.

## Sources
Kubernetes v1.36 `pkg/kubelet/lifecycle/predicate.go` (InsufficientResourcePrefix: `OutOfnvidia.com/gpu`; of taints, only NoExecute
counts), `pkg/controller/resourceclaim/controller.go` (claims of a Pod with a node are reserved only if they are allocated),
documentation "Dynamic Resource Allocation", Pre-scheduled Pods, and "Assigning Pods to Nodes", nodeName; Karpenter v1.14.1
`pkg/utils/pod/scheduling.go` IsProvisionable; NVIDIA gpu-operator v25.3 `validator/main.go` (plugin validation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._placement import is_of_daemon_set, is_of_kubelet, named_node
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.workload_class import SERVICE_ACCOUNT, owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

# Kinds whose Pods Kubernetes' own controllers create from an unchanged template.
_OF_KUBERNETES: Final = frozenset(
    {"CronJob", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)
# A dump may not contain the conditions of a Pod that the scheduler has bound.
_BEFORE_START: Final = frozenset({"", "Pending"})
_LONGEST_SHOWN: Final = 63
_CLAIMS: Final = (
    "The scheduler allocates ResourceClaims, so the Pod does not start unless its claim is already allocated."
)


@validates(POD, needs=CLAIM_NEEDS, concerns=MAY_DEMAND)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report the node that a Pod or template with GPUs names."""
    name = named_node(pod)
    if name is None or pod["status", "phase"].text not in _BEFORE_START:
        return
    if is_of_daemon_set(pod, ctx) or is_of_kubelet(pod, ctx):
        return
    owner = owner_kind(pod, ctx)
    if ctx.request.user.startswith(SERVICE_ACCOUNT) and ctx.wrapper is None and owner not in _OF_KUBERNETES:
        return
    demand = ctx.derived(gpu_demand)
    if not demand:
        if demand.doubt:
            yield demand.doubt
        return
    at_most = Stance.ENFORCE if ctx.wrapper is None or owner in _OF_KUBERNETES else Stance.WARN
    message = f"requests {', '.join(demand.names)} on node {name.text[:_LONGEST_SHOWN]} past the scheduler"
    hint = "remove nodeName, and select the node by its labels, such as kubernetes.io/hostname"
    yield Violation(name.path, message, at_most, hint, why="" if demand.resources else _CLAIMS)
