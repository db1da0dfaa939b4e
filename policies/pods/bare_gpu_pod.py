"""GPU Pod that no controller creates again.

## Why is this bad?
The work of the Pod is lost if its node fails or is removed, because no controller creates the Pod again. Karpenter evicts Pods without
a controller like all others when it consolidates, updates or expires a node.

## Instead
This policy is off by default: in repositories, most bare GPU Pods are short tests and examples, which need no controller.
Enable it where GPU Pods do lasting work:

```yaml
policies:
  pods/bare-gpu-pod:
    mode: warn
```

Create the Pod with a Job if its work ends, and with a Deployment or StatefulSet if it serves:

```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: evaluation
spec:
  backoffLimit: 3
  activeDeadlineSeconds: 14400
  template:
    spec:
      restartPolicy: Never
```

Not reported are:

- Pods that a controller owns. At admission, an owner that the sender may not name does not count.
- Pods that a ServiceAccount creates. Programs such as Airflow and JupyterHub watch their Pods themselves.
- Static Pods, interactive Pods (`stdin` or `tty`, or the workload class `interactive`), and hooks of Helm and Argo CD.

## Sources
Kubernetes v1.36 documentation "Pod Lifecycle" (a Pod is never rescheduled to another node); Karpenter v1.14.1
`pkg/utils/pod/scheduling.go` IsEvictable and IsReschedulable (owners do not matter, except DaemonSets and nodes); Helm documentation
"Chart Hooks"; Argo CD documentation "Resource Hooks".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._placement import is_of_kubelet
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.workload_class import CLASS_NEEDS, SERVICE_ACCOUNT, owner_kind, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_HOOKS: Final = ("argocd.argoproj.io/hook", "helm.sh/hook")


@validates(POD, mode=Stance.OFF, needs=CLASS_NEEDS, concerns=MAY_DEMAND)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a Pod with GPUs and without a controller."""
    if ctx.wrapper is not None or owner_kind(pod, ctx) or ctx.request.user.startswith(SERVICE_ACCOUNT):
        return
    if is_of_kubelet(pod, ctx) or any(pod["metadata", "annotations", hook] for hook in _HOOKS):
        return
    if any(container[name].value is True for container in pod["spec", "containers"] for name in ("stdin", "tty")):
        return
    demand = ctx.derived(gpu_demand)
    if not demand:
        if demand.doubt:
            yield demand.doubt
        return
    if ctx.derived(workload_class).name == "interactive":
        return
    message = f"requests {', '.join(demand.names)}, and no controller creates the Pod again if its node is removed"
    yield Violation(pod["kind"].path, message, hint="create the Pod with a Job, or with a Deployment if it serves")
