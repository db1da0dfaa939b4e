"""Disruption budget of a GPU NodePool that keeps empty nodes.

## Why is this bad?
While the budget is active, Karpenter removes no empty node, and GPU nodes without Pods cost money. A budget of 0
nodes without `reasons` applies to empty nodes too, although it is usually meant to protect nodes in use. The smallest
of all active budgets counts, so another budget does not allow what this one blocks.

## Instead
Write the reasons to which the budget applies:

```yaml
budgets:
  - nodes: "0"
    reasons: [Underutilized, Drifted]
```

gpugate simulates the budgets over one week, or over one year if a schedule names days of a month. It uses UTC, as
Karpenter does. Budgets may keep empty nodes for up to `max_blocked_hours` a day.

Pools with `spec.replicas` and pools with only reserved capacity are not reported, because budgets do not change the
cost of their empty nodes.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (GetAllowedDisruptionsByReason: the minimum over the active budgets; a
budget without reasons holds for all).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from gpugate.policies.nodepools._disruption_windows import REASONS, Budget, timeline
from gpugate.policies.nodepools._gpu_pools import accelerator, if_gpu_pool, is_reserved, is_static
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


class Params(PolicyParams, frozen=True, kw_only=True):
    """How long empty nodes may be kept.

    Attributes:
        max_blocked_hours: how many hours of a day (UTC) budgets may keep empty nodes.
    """

    max_blocked_hours: Annotated[int, msgspec.Meta(ge=0, le=24)] = 12


@validates(NODE_POOL, params=Params, mode=Stance.WARN, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report each budget of 0 nodes that contributes to keeping empty nodes for too long."""
    if pool["spec", "disruption", "budgets"].value and not is_static(pool) and not is_reserved(pool, ctx):
        yield from if_gpu_pool(pool, ctx, _violations(ctx))


def _violations(ctx: Context[Params]) -> Iterator[Violation]:
    times = ctx.derived(timeline)
    if times is None:
        return
    blocked = times.allowed("Empty", pool_nodes=1).get(0, 0)
    hours = times.most_hours_of_a_day(blocked)
    if hours <= ctx.params.max_blocked_hours:
        return
    how_long = "at all times" if blocked == times.stretch.quarters else f"up to {hours:g} hours a day"
    for budget in times.budgets:
        if "Empty" in budget.reasons and not budget.allowed(1) and times.window(budget).quarters & blocked:
            yield _blocking(budget, how_long, ctx.derived(accelerator))


def _blocking(budget: Budget, how_long: str, kind: str) -> Violation:
    reasons = budget.field["reasons"]
    whose = "for the reason Empty" if reasons else "and no reasons"
    message = f'a disruption budget with nodes: "{budget.nodes}" {whose} keeps empty {kind} nodes {how_long}'
    others = [reason for reason in REASONS if reason != "Empty" and reason in budget.reasons]
    if not others:
        hint = "remove this budget"
        return Violation(reasons.path, message, hint=hint)
    names = ", ".join(others)
    patch = Patch(
        "set", reasons.path, [*others], f"limits the budget to {names}, so that Karpenter can remove empty nodes"
    )
    return Violation(reasons.path, message, hint=f"write reasons: [{names}]", fix=Patches((patch,)))
