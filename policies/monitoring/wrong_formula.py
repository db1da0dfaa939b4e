"""Query that computes another value from GPU metrics than its threshold is meant for.

## Why is this bad?
The alert fires when nothing is wrong, or the workload scales too early. Used memory divided by free memory is not the used share: it is
0.9 when 47 % of the memory are used, and 1 when half of it is. An alert for low utilization on `DCGM_FI_DEV_GPU_UTIL` fires for
busy MIG slices, because the exporter reports 0 or nothing for these.

## Instead
Divide by the whole memory:

```yaml
expr: DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE) > 0.9
```

For MIG slices, query `DCGM_FI_PROF_GR_ENGINE_ACTIVE`, which is a ratio from 0 to 1, or exclude the slices with
`DCGM_FI_DEV_GPU_UTIL{GPU_I_PROFILE=""}`.

Used divided by free memory is reported if it is compared with a threshold from 0.5 to 1 (from 50 to 100 after a multiplication by 100),
in an alert with `>` or `>=` or in a trigger of KEDA. The utilization is reported only in alerts with `<` or `<=`, if a
node of the cluster offers MIG slices, and if the selector has no matcher that could leave them out.

## Sources
dcgm-exporter 4.5.3-4.8.2 `etc/dcp-metrics-included.csv` (units) and issues 105, 216 and 430 (0 or no series for MIG slices); NVIDIA DCGM
documentation, "Profiling metrics" (`DCGM_FI_PROF_GR_ENGINE_ACTIVE` for MIG).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from gpugate.policies.monitoring._rules import expressions
from gpugate.policies.sdk.facts import Known, Need, derived
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.objects import NODE, PROMETHEUS_RULE, SCALED_OBJECT
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.monitoring._rules import Expression
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.promql import Query, Selector

_USED: Final = "DCGM_FI_DEV_FB_USED"
_FREE: Final = "DCGM_FI_DEV_FB_FREE"
_UTILIZATION: Final = "DCGM_FI_DEV_GPU_UTIL"
_ENGINE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_SLICE: Final = "nvidia.com/mig-"
_DECIMAL: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
# Labels by which a series is of a whole GPU or of a slice, or that could select some GPUs; others say nothing of it.
_HARMLESS: Final = frozenset(
    {"pod", "namespace", "container", "exported_pod", "exported_namespace", "exported_container", "job"}
)


@validates(
    PROMETHEUS_RULE, SCALED_OBJECT, mode=Stance.WARN, at_most=Stance.WARN, needs=(Need(NODE, ("status.allocatable",)),)
)
def check(_: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report used divided by free memory, and alerts for a low utilization in a cluster with MIG slices."""
    for expression in ctx.derived(expressions):
        query = expression.query
        limit = _memory_threshold(expression)
        if limit is not None and _divides_by_free(query):
            share = limit / (1 + limit)
            message = f"{_USED} / {_FREE} is {float(limit):g} when {float(share):.0%} of the memory are used"
            hint = f"divide by ({_USED} + {_FREE})"
            why = "The alert fires far too early." if expression.is_alert else "The workload scales out far too early."
            yield Violation(expression.field.path, message, hint=hint, why=why)
        if expression.is_alert and any(map(_may_be_slice, query.selectors)) and _is_low(query):
            yield from _on_slices(expression, ctx)


def _memory_threshold(expression: Expression) -> Fraction | None:
    """Return the ratio that a query is compared with; None if it is not one from 0.5 to 1."""
    if expression.is_alert:
        texts = [right.text for operator, _, right in expression.query.operators if operator in {">", ">="}]
    else:
        texts = [expression.owner["metadata", "threshold"].text]
    factors = [text for o, left, right in expression.query.operators if o == "*" for text in (left.text, right.text)]
    numbers = [Fraction(text) for text in texts if _DECIMAL.fullmatch(text)]
    if len(numbers) != 1 or (factors and "100" not in factors):
        return None
    limit = numbers[0] / 100 if factors else numbers[0]
    return limit if Fraction(1, 2) <= limit <= 1 else None


def _divides_by_free(query: Query) -> bool:
    """Tell whether the query divides used by free memory; a sum or difference anywhere could make it another formula."""
    if any(operator in {"+", "-"} for operator, _, _ in query.operators):
        return False
    pairs = zip(query.selectors, query.selectors[1:], strict=False)
    return any(
        used.metric == _USED and free.metric == _FREE and _between(query, used.start, free.start) in ({"/"}, {"/", "*"})
        for used, free in pairs
    )


def _between(query: Query, start: int, end: int) -> set[str]:
    return {operator for operator, left, right in query.operators if start <= left.start and right.start <= end}


def _is_low(query: Query) -> bool:
    """Tell whether a query holds for low values only: its comparisons with numbers are all `<` or `<=`."""
    compared = {
        o for o, _, right in query.operators if o in {"<", "<=", ">", ">=", "==", "!="} and right.kind == "number"
    }
    return bool(compared) and compared <= {"<", "<="}


def _may_be_slice(selector: Selector) -> bool:
    return selector.metric == _UTILIZATION and all(matcher.label in _HARMLESS for matcher in selector.matchers)


def _on_slices(expression: Expression, ctx: AnyContext) -> Iterator[Violation]:
    if any(selector.metric == _ENGINE for selector in expression.query.selectors):
        return
    nodes = ctx.facts.list(NODE)
    name = derived(nodes, _node_with_slices, ctx) if isinstance(nodes, Known) else ""
    if name:
        message = f"{_UTILIZATION} is 0 or missing for MIG slices, and node {name} offers some"
        hint = f'query {_ENGINE} for slices (0 to 1), or exclude them with {{GPU_I_PROFILE=""}}'
        why = "The alert fires for MIG slices that work, or never for slices."
        yield Violation(expression.field.path, message, hint=hint, why=why)


def _node_with_slices(nodes: Known, _: AnyContext) -> str:
    """Return the first node that offers MIG slices; empty if none does."""
    names = (
        node["metadata", "name"].text
        for node in nodes.items
        if any(
            name.startswith(_SLICE) and str(count) != "0"
            for name, count in node["status", "allocatable"].mapping.items()
        )
    )
    return min(names, default="")
