"""Query for a metric that Karpenter no longer exports.

## Why is this bad?
The query has no result, which is not an error: the alert never fires, the recording rule records nothing, and a trigger of KEDA does
not scale. Karpenter 1.0 renamed 21 of its metrics and dropped others. `karpenter_nodeclaims_terminated_total` and
`karpenter_nodes_terminated_total` have no label `reason`.

## Instead
Query the name that Karpenter exports today:

```yaml
- alert: GPUNodePoolNearLimit
  expr: |
    karpenter_nodepools_usage{resource_type="nvidia.com/gpu"}
    / karpenter_nodepools_limit{resource_type="nvidia.com/gpu"} > 0.9
```

The reason of a disruption is a label of `karpenter_nodeclaims_disrupted_total`. A query that also selects the new name, such as
`karpenter_nodepool_usage or karpenter_nodepools_usage`, is not reported, and neither is a metric that a rule of the same object
records. If the policy file sets `target.karpenter` below 1.0, nothing is reported.

## Sources
Karpenter "v1 Migration", section "Updated metrics", and "v1beta1 Upgrade Reference"; Karpenter v1.14.1 `pkg/metrics/metrics.go` (labels).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.karpenter_metrics import DROPPED, RENAMED, WITH_REASON, WITHOUT_REASON
from gpugate.policies.monitoring._rules import expressions
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.objects import PROMETHEUS_RULE, SCALED_OBJECT
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.monitoring._rules import Expression
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.promql import Matcher

_SERIES: Final = ("_bucket", "_count", "_sum")
# Alternatives of plain words; any other pattern might match a series without the label.
_WORDS: Final = re.compile(r"[A-Za-z0-9_]+(?:\|[A-Za-z0-9_]+)*")


@validates(PROMETHEUS_RULE, SCALED_OBJECT, mode=Stance.WARN, at_most=Stance.WARN)
def check(_: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report each metric of a query that Karpenter does not export, and labels that its metrics do not have."""
    if not at_least(ctx.target.karpenter, "1.0"):
        return
    queries = ctx.derived(expressions)
    recorded = {expression.owner["record"].text for expression in queries}
    for expression in queries:
        yield from _stale(expression, recorded)
        yield from _without_label(expression)


def _stale(expression: Expression, recorded: set[str]) -> Iterator[Violation]:
    selected = {selector.metric: _family(selector.metric) for selector in expression.query.selectors}
    for metric, family in selected.items():
        new = RENAMED.get(family, DROPPED.get(family))
        if new is None or metric in recorded or (new and new in selected.values()):
            continue
        if family in RENAMED:
            message, hint = f"Karpenter 1.0 renamed {family} to {new}", f"write {metric.replace(family, new)}"
        else:
            message = f"Karpenter exports no metric {family} since 1.0"
            hint = f"the nearest metric is {new}" if new else "remove the query, or write one for another metric"
        yield Violation(expression.field.path, message, hint=hint, why=expression.consequence)


def _family(metric: str) -> str:
    """Return the name of a metric without the end that its series have if it is a histogram or summary."""
    base = next((metric.removesuffix(end) for end in _SERIES if metric.endswith(end)), metric)
    return base if base in RENAMED or base in DROPPED or base in RENAMED.values() else metric


def _without_label(expression: Expression) -> Iterator[Violation]:
    selectors = expression.query.selectors
    wrong = {s.metric for s in selectors if s.metric in WITHOUT_REASON and any(map(_needs_reason, s.matchers))}
    for metric in sorted(wrong):
        message = f"{metric} has no label reason"
        hint = f"the nearest metric with this label is {WITH_REASON}"
        yield Violation(expression.field.path, message, hint=hint, why=expression.consequence)


def _needs_reason(matcher: Matcher) -> bool:
    if matcher.label != "reason" or not matcher.value:
        return False
    return matcher.operator == "=" or (matcher.operator == "=~" and bool(_WORDS.fullmatch(matcher.value)))
