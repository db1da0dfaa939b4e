"""Training NodePool in which Karpenter may replace several nodes at once.

## Why is this bad?
Karpenter can replace several nodes at once, and each replaced node stops the training run that uses it. A new image
or a change of the NodePool makes all nodes drift. Karpenter replaces as many nodes at once as the budgets allow. By
default that is a tenth of the pool. If the pool has budgets and none is active, it is any number.

## Instead
Limit the reasons that affect nodes in use, and let Karpenter remove empty nodes:

```yaml
budgets:
  - nodes: "0"
    reasons: [Underutilized, Drifted]
  - nodes: "1"
    reasons: [Empty]
```

A permanent budget of 0 for `Drifted` also keeps old images: add a schedule with a maintenance window, and a budget of 1
for that time. To find the smallest limit, gpugate simulates the budgets every 15 minutes for one week (one year if a
schedule names days of the month). Times are in UTC, as in Karpenter. The smallest active budget counts, and a
percentage is rounded up.

A pool counts as a training pool by its labels, as `nodepools/training-on-spot` describes. With `WhenEmpty`, or without
consolidation, only `Drifted` is evaluated.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (GetAllowedDisruptionsByReason), `pkg/apis/crds/karpenter.sh_nodepools.yaml`
(default of 10 %), `pkg/controllers/disruption/drift.go`, `consolidation.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.nodepools._disruption_windows import UNBOUNDED, Timeline, timeline
from gpugate.policies.nodepools._gpu_pools import if_gpu_pool, is_static, is_training
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, limits
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field, Json

_DEFAULT: Final[list[Json]] = [{"nodes": "10%"}]


class Params(PolicyParams, frozen=True, kw_only=True):
    """How much disruption is allowed.

    Attributes:
        max_nodes: how many nodes Karpenter may disrupt at once.
        pool_nodes: the pool size for which a percentage is computed; a `limits.nodes` or `replicas` below it
            counts instead.
    """

    max_nodes: Annotated[int, msgspec.Meta(ge=0)] = 1
    pool_nodes: Annotated[int, msgspec.Meta(ge=1)] = 20


@validates(NODE_POOL, params=Params, mode=Stance.WARN, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report the largest number that budgets allow at some time, if it is above the maximum."""
    if is_training(pool, ctx):
        yield from if_gpu_pool(pool, ctx, _violations(pool, ctx))


def _violations(pool: Field, ctx: Context[Params]) -> Iterator[Violation]:
    times = ctx.derived(timeline)
    if times is None:  # a fault stops all disruption
        return
    size = _size(pool, ctx.params)
    most, reasons, when = 0, [], 0
    for reason in _reasons(pool):
        allowed = times.allowed(reason, size)
        if max(allowed) > ctx.params.max_nodes:
            most = max(most, *allowed)
            reasons.append(reason)
            when |= _join(allowed, ctx.params.max_nodes)
    if not reasons:
        return
    budgets = pool["spec", "disruption", "budgets"]
    count = "any number of nodes" if most == UNBOUNDED else f"{most} of {size} nodes"
    message = (
        f"lets Karpenter disrupt {count} at once for {' and '.join(reasons)}, {_since(times, when)} "
        f"(maximum: {ctx.params.max_nodes})"
    )
    hint = f'add a budget of nodes: "{ctx.params.max_nodes}" with reasons: [{", ".join(reasons)}]'
    yield Violation(budgets.path, message, hint=hint, fix=_bounded(budgets, reasons, ctx.params.max_nodes))


def _reasons(pool: Field) -> tuple[str, ...]:
    disruption = pool["spec", "disruption"]
    keeps = disruption["consolidationPolicy"].text == "WhenEmpty" or disruption["consolidateAfter"].text == "Never"
    return ("Drifted",) if keeps or is_static(pool) else ("Drifted", "Underutilized")


def _size(pool: Field, params: Params) -> int:
    replicas = pool["spec", "replicas"].integer
    limit = limits(pool).get("nodes")
    return min(int(size) for size in (params.pool_nodes, limit, replicas) if size is not None)


def _join(allowed: dict[int, int], max_nodes: int) -> int:
    times = 0
    for most, when in allowed.items():
        times |= when if most > max_nodes else 0
    return times


def _since(times: Timeline, when: int) -> str:
    return "at any time" if when == times.stretch.quarters else f"from {times.first(when)}"


def _bounded(budgets: Field, reasons: list[str], max_nodes: int) -> Patches:
    budget: Json = {"nodes": str(max_nodes), "reasons": [*reasons]}
    reason = f"limits {' and '.join(reasons)} to {max_nodes} nodes at once"
    # The file does not contain the default, and an added value alone would replace it.
    if budgets.value == _DEFAULT or not budgets.value:
        return Patches((Patch("set", budgets.path, [*_DEFAULT, budget], reason),))
    return Patches((Patch("append", budgets.path, budget, reason),))
