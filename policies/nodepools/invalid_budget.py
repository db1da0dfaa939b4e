"""Disruption budget of a GPU NodePool that is invalid or has no effect.

## Why is this bad?
If Karpenter cannot read a schedule, it disrupts no node of the pool, for any reason and at any time: empty GPU nodes
stay, and nodes with an old image are never replaced. The API server accepts most invalid schedules, because it only
checks for five words. It refuses the pool for other errors, such as `nodes: 0` without quotes.

Some budgets are valid, but always or never active. They get a warning: a duration that lasts until the next start, a
duration of zero, a date that does not exist, and an empty list of reasons.

## Instead
Write five fields in UTC: minute, hour, day of month, month, day of week (0 to 6, or SUN to SAT), or a shorthand such
as `@daily`; `7`, `L`, `#`, time zones and ranges that wrap are invalid. Write the duration in hours and minutes, and
the number of nodes as a string:

```yaml
budgets:
  - nodes: "0"
    reasons: [Underutilized, Drifted]
    schedule: "0 9 * * MON-FRI"
    duration: 8h
```

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (IsActive, GetAllowedDisruptionsByReason, which fails closed) and
`pkg/apis/crds/karpenter.sh_nodepools.yaml`; robfig/cron v3.0.1 `parser.go`, `spec.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._disruption_windows import MOST_BUDGETS, Budget, Fault, Timeline, faults, timeline
from gpugate.policies.nodepools._gpu_pools import if_gpu_pool
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import Params, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import Context


_WORDS: Final = 5  # of a schedule
_REFUSED: Final = "The CRD does not allow the value, so the API server refuses the NodePool."


@validates(NODE_POOL, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report every fault, or else the budgets that are always or never active."""
    if pool["spec", "disruption", "budgets"].value:
        yield from if_gpu_pool(pool, ctx, _violations(pool, ctx))


def _violations(pool: Field, ctx: Context[Params]) -> Iterator[Violation]:
    times = ctx.derived(timeline)
    budgets = pool["spec", "disruption", "budgets"]
    count = len(list(budgets))
    if count > MOST_BUDGETS:
        message = f"{count} budgets (maximum: {MOST_BUDGETS})"
        yield Violation(budgets.path, message, hint="remove budgets that repeat others", why=_REFUSED)
    elif times is None:
        for budget in budgets:
            yield from (_refused(fault) for fault in faults(budget))
    else:
        for active in times.budgets:
            yield from _idle(active, times)


def _refused(fault: Fault) -> Violation:
    value = fault.field.value
    fix = None
    if fault.field.path[-1] == "nodes" and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        fix = Patches(
            (Patch("set", fault.field.path, str(value), "makes nodes a string, as the CRD requires"),), safe=True
        )
    why = "" if _is_stored(fault.field) else _REFUSED
    return Violation(fault.field.path, fault.message, hint=fault.hint, fix=fix, why=why)


def _is_stored(field: Field) -> bool:
    """Tell whether the API server accepts a value that Karpenter cannot parse: five words, or a number of any size.

    Source: Karpenter v1.14.1 `pkg/apis/crds/karpenter.sh_nodepools.yaml` (patterns of schedule and nodes).
    """
    if field.path[-1] == "schedule":
        return field.text.startswith("@") or len(field.text.split()) >= _WORDS
    return field.path[-1] == "nodes" and field.text.isdigit()


def _idle(budget: Budget, times: Timeline) -> Iterator[Violation]:
    reasons, duration = budget.field["reasons"], budget.field["duration"]
    if not budget.reasons:
        message = "the budget has an empty list of reasons, so it has no effect"
        hint = "write the reasons, or remove the field to include all of them"
        yield Violation(reasons.path, message, Stance.WARN, hint, why="The budget limits no disruption.")
    if budget.schedule is None:
        return
    window = times.window(budget)
    if window.always:
        schedule = budget.field["schedule"]
        drop = tuple(
            Patch("remove", field.path, None, "removes schedule and duration, which have no effect")
            for field in (schedule, duration)
        )
        message = f'schedule "{schedule.text[:40]}" with duration {duration.text} makes a budget that is always active'
        hint = "remove schedule and duration, or shorten the duration"
        why = "The budget limits disruption at all times, also outside the times of its schedule."
        yield Violation(duration.path, message, Stance.WARN, hint, Patches(drop, safe=True), why=why)
    elif window.never:
        message = f"duration {duration.text} makes a budget that is never active"
        hint = "write a duration above zero, or remove the budget"
        yield Violation(duration.path, message, Stance.WARN, hint, why="The budget limits no disruption.")
