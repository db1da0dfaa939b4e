"""GPU NodePool whose nodes are never removed, used or not.

## Why is this bad?
With `consolidateAfter: Never` Karpenter removes no node of the pool, not even one that no Pod uses, so a GPU node that
was needed for an hour is paid for until its `expireAfter`, by default 30 days later. A node with eight GPUs costs 20 to
140 USD an hour.

## Instead
Write how long a node may stay empty. Where Pods must not be moved, let only empty nodes go:

```yaml
disruption:
  consolidationPolicy: WhenEmpty
  consolidateAfter: 30m
```

Pools with `spec.replicas`, which Karpenter does not consolidate, and pools of reserved capacity alone, which is paid for
anyhow, pass. That budgets keep empty nodes is judged by `nodepools/budget-blocks-empty`.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (consolidateAfter, replicas), `pkg/controllers/disruption/emptiness.go`
(Never holds for empty nodes too).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.nodepools._gpu_pools import if_gpu_pool, is_reserved, is_static
from gpugate.policies.sdk.findings import Skip, Violation
from gpugate.policies.sdk.kinds import NODE_POOL
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.policy import Params, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import Context


@validates(NODE_POOL, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report consolidation that is turned off."""
    after = pool["spec", "disruption", "consolidateAfter"]
    if after.text != "Never" or is_static(pool) or is_reserved(pool, ctx):
        return
    hint = "write how long a node may stay empty, such as 5m for inference or 30m for training"
    found = Violation(after.path, "consolidateAfter is Never: GPU nodes that nobody uses are never removed", hint=hint)
    yield from if_gpu_pool(pool, ctx, (found,))
