"""GPU workload in a namespace without a quota on GPUs.

## Why is this bad?
The namespace can use every GPU of the cluster, and Karpenter launches nodes for it up to the limits of the NodePools. Other teams
wait, and the cost has no bound but these limits.

## Instead
This policy is off by default. Enable it if each namespace must have a quota on GPUs:

```yaml
policies:
  quotas/unquotaed-namespace:
    mode: warn
```

Then create a ResourceQuota in the namespace:

```yaml
apiVersion: v1
kind: ResourceQuota
metadata:
  name: gpus
  namespace: research
spec:
  hard:
    requests.nvidia.com/gpu: "8"
```

Each extended resource and each device class that the workload requests needs its name in a quota:
`requests.nvidia.com/mig-1g.10gb`, or `gpu.nvidia.com.deviceclass.resource.k8s.io/devices` for dynamic resource allocation. Any value
counts, and so does a quota with a scope. A workload in a queue of Kueue or KAI is not reported, because the queue has a quota.

A workload is reported once, and its Pods are not. A bare Pod is denied in mode `enforce`; a workload gets a warning. The policy is
evaluated only if all ResourceQuotas are known: in a cluster, or with `gpugate check --complete-context`.

## Sources
Kubernetes v1.36 "Resource Quotas" (extended resources, device classes), `pkg/quota/v1/evaluator/core/pods.go` and
`resource_claims.go` (names); Kueue v0.14 "ClusterQueue" (nominalQuota); KAI-Scheduler v0.10 "Queues"; Karpenter v1.14 "NodePools"
(limits); open-policy-agent/gatekeeper-library pull request 737.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.accelerators import IMPLICIT_CLASS_PREFIX
from gpugate.policies.sdk.facts import Known, Need, Unavailable, derived
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.objects import POD, RESOURCE_QUOTA
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.queues import QUEUE_LABEL, queue_name
from gpugate.policies.sdk.workload_class import ceiling_of_templates, owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_QUEUE_LABELS: Final = (QUEUE_LABEL, "kai.scheduler/queue")
_FIRST: Final = "first template that requests what no quota names"


@validates(
    POD,
    mode=Stance.OFF,
    needs=(Need(RESOURCE_QUOTA, ("spec.hard",)), *CLAIM_NEEDS),
    concerns=MAY_DEMAND,
)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a workload, or a bare Pod, that requests accelerators which no ResourceQuota of its namespace names."""
    if ctx.wrapper is None and owner_kind(pod, ctx):
        return
    demand = ctx.derived(gpu_demand)
    if not demand or any(queue_name(pod, ctx, label) for label in _QUEUE_LABELS):
        return
    namespace = ctx.request.namespace
    quotas = ctx.facts.list(RESOURCE_QUOTA, namespace)
    if isinstance(quotas, Unavailable):
        yield Skip(quotas.reason)
        return
    limited = derived(quotas, _limited, ctx, namespace)
    missing = [
        keys[0]
        for keys in (*map(_of_resource, demand.resources), *map(_of_class, demand.device_classes))
        if limited.isdisjoint(keys)
    ]
    if not missing:
        return
    if not quotas.complete:
        yield Skip("other ResourceQuotas may exist")
        return
    # One finding for all templates, at the first that requests GPUs.
    if ctx.wrapper and ctx.wrapper.memo.setdefault(_FIRST, pod.path) != pod.path:
        return
    metadata = ctx.wrapper.root["metadata"] if ctx.wrapper else pod["metadata"]
    message = f"namespace {namespace} has no ResourceQuota with {', '.join(missing)}"
    hint = f"create a ResourceQuota with {', '.join(missing)} in namespace {namespace}"
    yield Violation(metadata["namespace"].path, message, ceiling_of_templates(ctx), hint)


def _limited(quotas: Known, _: AnyContext) -> frozenset[str]:
    return frozenset(name for quota in quotas.items for name in quota["spec", "hard"].mapping)


def _of_resource(name: str) -> tuple[str, ...]:
    """Return the names in a quota that limit an extended resource; that of a device class also limits its devices."""
    requests = f"requests.{name}"
    device_class = name.removeprefix(IMPLICIT_CLASS_PREFIX)
    return (requests,) if device_class == name else (requests, *_of_class(device_class))


def _of_class(name: str) -> tuple[str, ...]:
    return f"{name}.deviceclass.resource.k8s.io/devices", f"requests.{IMPLICIT_CLASS_PREFIX}{name}"
