"""Disruption budget of a GPU NodePool that another budget makes ineffective.

## Why is this bad?
Karpenter takes the smallest of all active budgets, so this budget never allows a disruption that the others forbid. Under
`nodes: "0"` for all reasons, a budget of 1 for `Drifted` replaces no node, and the nodes keep their old image.

## Instead
Write budgets that do not overlap: other reasons, or other times.

```yaml
budgets:
  - nodes: "0"
    reasons: [Underutilized]
  - nodes: "1"
    reasons: [Drifted]
```

gpugate simulates the budgets over one week, or over one year if a schedule names days of a month, in UTC. A percentage is
compared with a number for pools of every size: `10%` next to `5` is not reported, because it is smaller in a pool of 40
nodes. A budget that only repeats another one is not reported either.

A budget for `Empty` alone under a budget of 0 is left to `nodepools/budget-blocks-empty`, and budgets that are never
active to `nodepools/invalid-budget`.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (MustGetAllowedDisruptions, GetAllowedDisruptionsByReason: the minimum over the
active budgets, percentages rounded up).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.nodepools._disruption_windows import REASONS, Budget, Timeline, timeline
from gpugate.policies.nodepools._gpu_pools import if_gpu_pool
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


@validates(NODE_POOL, mode=Stance.WARN, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report each budget that is never the smallest."""
    if pool["spec", "disruption", "budgets"].value:
        yield from if_gpu_pool(pool, ctx, _violations(ctx))


def _violations(ctx: AnyContext) -> Iterator[Violation]:
    times = ctx.derived(timeline)
    if times is None:  # a fault stops all disruption
        return
    # Another policy reports a budget with a schedule that is always active.
    effective = [b for b in times.budgets if b.schedule is None or not times.window(b).always]
    for budget in times.budgets:
        others = [other for other in effective if other is not budget and _allows_as_much(budget, other)]
        shadows = _shadows(budget, others, times)
        if any(_allows_more(budget, other) for other in shadows):
            effective = [other for other in effective if other is not budget]
            yield _shadowed(budget, shadows)


def _allows_as_much(budget: Budget, other: Budget) -> bool:
    """Tell whether a budget allows at least as many nodes as another in pools of every size.

    Any percentage above 0 of one node is one node, and a percentage of a pool without a size has no bound.
    """
    number, of_other = _number(budget), _number(other)
    if _is_percentage(budget) == _is_percentage(other):
        return number >= of_other
    return of_other == 0 or (of_other == 1 and number > 0 and _is_percentage(budget))


def _allows_more(budget: Budget, other: Budget) -> bool:
    """Tell whether a budget allows at least as many nodes as another in all pools, and more in some."""
    return _allows_as_much(budget, other) and not _allows_as_much(other, budget)


def _number(budget: Budget) -> int:
    return int(budget.nodes.removesuffix("%"))


def _is_percentage(budget: Budget) -> bool:
    return budget.nodes.endswith("%")


def _shadows(budget: Budget, others: list[Budget], times: Timeline) -> list[Budget]:
    """Return budgets of which one applies, for the same reason, whenever this one does; none if this one ever counts."""
    active = times.window(budget).quarters
    shadows: list[Budget] = []
    if times.window(budget).never:
        return shadows
    for reason in budget.reasons:
        left = active
        for other in others:
            if reason in other.reasons and times.window(other).quarters & left:
                left &= ~times.window(other).quarters
                shadows.append(other)
        if left:
            return []
    only_empty = budget.reasons == {"Empty"}
    return [other for other in others if other in shadows and not (only_empty and not _number(other))]


def _shadowed(budget: Budget, shadows: list[Budget]) -> Violation:
    reasons = [reason for reason in REASONS if reason in budget.reasons]
    whose = f" for {' and '.join(reasons)}" if len(reasons) < len(REASONS) else ""
    several = len(shadows) > 1
    numbers = " and ".join(dict.fromkeys(f'"{other.nodes}"' for other in shadows))
    its = f"the budget{'s' if several else ''} of nodes: {numbers}"
    message = (
        f'the budget of nodes: "{budget.nodes}"{whose} has no effect: {its} '
        f"allow{'' if several else 's'} no more whenever this one is active"
    )
    smaller = " and ".join(dict.fromkeys(f'"{other.nodes}"' for other in shadows if _allows_more(budget, other)))
    hint = f"remove this budget, or limit that of nodes: {smaller} to other reasons or times"
    return Violation(budget.field.path, message, hint=hint)
