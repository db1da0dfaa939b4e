"""GPU NodePool whose nodes are never removed, even when they are empty.

## Why is this bad?
Karpenter keeps GPU nodes without Pods, and each costs money until it expires. A node with eight GPUs costs 20 to 140
USD an hour, and nodes expire after 30 days by default.

`consolidateAfter: Never` has this effect. A value that is not below `expireAfter` has it too, because the node then
expires first. A value of `max_after` or more is also reported.

An `expireAfter` of one hour or less already limits the cost of an empty node. In such a pool, only `Never` and values
of `max_after` or more are reported.

## Instead
Write how long a node may stay empty. If Pods must not be moved, allow consolidation of empty nodes only:

```yaml
disruption:
  consolidationPolicy: WhenEmpty
  consolidateAfter: 30m
```

Pools with `spec.replicas` are not reported, because Karpenter does not consolidate them. Pools with only reserved
capacity are not reported, because it costs the same when idle. `nodepools/budget-blocks-empty` reports budgets that
keep empty nodes.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (consolidateAfter, replicas), `pkg/controllers/disruption/emptiness.go`
(the value `Never` also applies to empty nodes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._gpu_pools import accelerator, if_gpu_pool, is_reserved, is_static
from gpugate.policies.sdk import durations
from gpugate.policies.sdk.durations import Duration, DurationError
from gpugate.policies.sdk.findings import Skip, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

# Up to this `expireAfter`, an empty node expires before it costs much.
_SHORT_LIFE: Final = "1h"
_SHOWN: Final = 20  # characters of a duration


class Params(PolicyParams, frozen=True, kw_only=True):
    """When consolidation counts as turned off.

    Attributes:
        max_after: a `consolidateAfter` of this duration or longer is always reported.
    """

    max_after: Duration = "720h"


@validates(NODE_POOL, params=Params, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report consolidation that is turned off, or that comes too late for any node."""
    after = pool["spec", "disruption", "consolidateAfter"]
    why = _why(
        after.text, pool["spec", "template", "spec", "expireAfter"].text, ctx.params.max_after, ctx.derived(accelerator)
    )
    if not why or is_static(pool) or is_reserved(pool, ctx):
        return
    hint = "write how long a node may stay empty: consolidateAfter such as 5m for inference or 30m for training"
    yield from if_gpu_pool(pool, ctx, (Violation(after.path, why, hint=hint),))


def _why(after: str, expires: str, max_after: str, kind: str) -> str:
    """Return why empty nodes are not removed; empty if they are, or if the API server rejects the duration."""
    if after == "Never":
        return f"consolidateAfter is Never: Karpenter never removes empty {kind} nodes"
    wait = _duration(after)
    if wait is None:
        return ""
    age = _duration(expires)
    if age is not None and wait >= age > durations.parse(_SHORT_LIFE):
        return f"consolidateAfter {after[:_SHOWN]} is not below expireAfter {expires[:_SHOWN]}: Karpenter removes no empty {kind} node before it expires"
    if wait >= durations.parse(max_after):
        return (
            f"consolidateAfter {after[:_SHOWN]} keeps empty {kind} nodes that long (it must be less than {max_after})"
        )
    return ""


def _duration(text: str) -> int | None:
    try:
        return durations.parse(text)
    except DurationError:
        return None
