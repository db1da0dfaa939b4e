"""Training NodePool whose nodes are consolidated while in use, or as soon as they are empty.

## Why is this bad?
Karpenter evicts training Pods from a node that is little used, and they lose their work since the last checkpoint.
`consolidationPolicy: WhenEmpty` prevents that. The annotation `karpenter.sh/do-not-disrupt` prevents it too, but
every Pod needs it.

If Karpenter removes a node as soon as it is empty, the next Job of a run, or a restart, needs another node minutes
later. GPU nodes start slowly, and EC2 may have no capacity left.

Karpenter's defaults, `WhenEmptyOrUnderutilized` and `0s`, have both effects.

## Instead
```yaml
disruption:
  consolidationPolicy: WhenEmpty
  consolidateAfter: 30m
```

A pool counts as a training pool by its labels: `gpugate.dev/workload-class: training`, `workload: training` or
`node-type: gpu-training`. Pools with `spec.replicas` are not reported, because Karpenter does not consolidate them.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` and `pkg/apis/crds/karpenter.sh_nodepools.yaml` (defaults),
`pkg/controllers/disruption/consolidation.go` (WhenEmpty).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.nodepools._gpu_pools import if_gpu_pool, is_static, is_training
from gpugate.policies.sdk import durations
from gpugate.policies.sdk.durations import Duration, DurationError
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


class Params(PolicyParams, frozen=True, kw_only=True):
    """The settings that a training pool needs.

    Attributes:
        min_after: how long a node must be empty before Karpenter removes it.
    """

    min_after: Duration = "10m"


@validates(NODE_POOL, params=Params, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report a policy other than WhenEmpty, and a wait that is too short."""
    if is_training(pool, ctx) and not is_static(pool):
        yield from if_gpu_pool(pool, ctx, _violations(pool["spec", "disruption"], ctx.params))


def _violations(disruption: Field, params: Params) -> Iterator[Violation]:
    policy, after = disruption["consolidationPolicy"], disruption["consolidateAfter"]
    if after.text != "Never" and policy.text not in {"", "WhenEmpty"}:
        message = f"consolidationPolicy {policy.text[:30]} lets Karpenter evict training Pods from little-used nodes"
        yield Violation(
            policy.path, message, hint="write consolidationPolicy: WhenEmpty", fix=_set(policy, "WhenEmpty")
        )
    try:
        short = durations.parse(after.text) < durations.parse(params.min_after)
    except DurationError:  # Never, or a value that the API server rejects
        return
    if short:
        message = f"consolidateAfter is {after.text} (minimum for training pools: {params.min_after})"
        hint = f"write consolidateAfter: {params.min_after} or more"
        why = "The next step of the run may need the node again soon: GPU nodes start slowly, and EC2 may have no capacity."
        yield Violation(after.path, message, hint=hint, fix=_set(after, params.min_after), why=why)


def _set(field: Field, value: str) -> Patches:
    reason = f"sets {field.path[-1]}: {value}, which keeps training Pods and their nodes"
    return Patches((Patch("set", field.path, value, reason),))
