"""Pod that tolerates every taint.

## Why is this bad?
The Pod may run on any node, including GPU nodes. A toleration without a key also covers `karpenter.sh/disrupted`, the
taint of nodes that Karpenter drains. Karpenter does not evict such a Pod, so it ends with its node, without a drain.
With the effect `NoExecute` the Pod also stays on failed nodes.

## Instead
Name the taints that the Pod should tolerate. Run agents for every node as a DaemonSet, whose Pods are not reported.

```yaml
tolerations:
  - key: nvidia.com/gpu
    operator: Exists
    effect: NoSchedule
```

## Sources
- Tolerations: `k8s.io/api/core/v1/toleration.go`, v0.36.
- Drain: Karpenter v1.14.1 `pkg/utils/pod/scheduling.go` IsEvictable, IsDrainable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.pods._placement import (
    OF_DAEMON_SET,
    POOL_NEED,
    TOLERATES_EVERYTHING,
    is_of_daemon_set,
    missing_tolerations,
)
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, gpu_demand
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

# The consequence of tolerating each effect; PreferNoSchedule excludes no Pod.
_UNDRAINED: Final = "Karpenter does not evict the Pod, because it also tolerates karpenter.sh/disrupted: it ends with its node, without a drain."
_REASONS: Final = {
    "": _UNDRAINED,
    "NoSchedule": _UNDRAINED,
    "NoExecute": "Kubernetes does not move the Pod from a failed node, so its work stops while the node is unavailable.",
}
_CONSEQUENCES: Final = {
    "": "the Pod may run on GPU nodes, and Karpenter does not drain it",
    "NoSchedule": "the Pod may run on GPU nodes, and Karpenter does not drain it",
    "NoExecute": "the Pod stays on failed nodes",
}
_OF_GPU_PODS: Final = dict.fromkeys(("", "NoSchedule"), "Karpenter does not drain the Pod")


@validates(POD, mode=Stance.WARN, needs=(*CLAIM_NEEDS, POOL_NEED), concerns=TOLERATES_EVERYTHING & ~OF_DAEMON_SET)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report the first toleration without a key, and what it allows."""
    wild = [t for t in pod["spec", "tolerations"] if _is_wild(t)]
    if not wild or is_of_daemon_set(pod, ctx):
        return
    effects = [t["effect"].text for t in wild]
    worst = next(effect for effect in _CONSEQUENCES if effect in effects)
    reach = f"every {worst} taint" if worst else "every taint"
    of_gpu_pod = _OF_GPU_PODS.get(worst) if ctx.derived(gpu_demand) else None
    yield Violation(
        wild[0].path,
        f"tolerates {reach}: {of_gpu_pod or _CONSEQUENCES[worst]}",
        hint="name the taints to tolerate, or run an agent for every node as a DaemonSet",
        fix=Patches(tuple(_named(pod, wild, ctx))),
        why=_REASONS[worst],
    )


def _is_wild(toleration: Field) -> bool:
    return (
        not toleration["key"].text
        and toleration["operator"].text == "Exists"
        and toleration["effect"].text in _CONSEQUENCES
    )


def _named(pod: Field, wild: list[Field], ctx: AnyContext) -> Iterator[Patch]:
    """Return the fix: tolerate only the taints of the accelerators that the Pod requests."""
    others = [t for t in pod["spec", "tolerations"] if not _is_wild(t)]
    for missing in missing_tolerations(others, pod, ctx.derived(gpu_demand), ctx):
        reason = f"tolerates {missing.value['key']} by its name"
        yield Patch("append", pod["spec", "tolerations"].path, missing.value, reason)
    # In reverse order, so that the indices of earlier elements do not change.
    for toleration in reversed(wild):
        yield Patch("remove", toleration.path, None, "removes the toleration of every taint")
