"""Whether a query has a result only while Pods of the scaled workload run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling.queries import metrics
from gpugate.policies.scaling.queries.bounds import is_zero

if TYPE_CHECKING:
    from gpugate.policies.scaling.queries.promql import Matcher, Query, Selector

# Functions with a result where there are no series (Prometheus v3.5 `promql/functions.go`).
_FROM_NOTHING: Final = frozenset(
    {
        "absent",
        "absent_over_time",
        "day_of_month",
        "day_of_week",
        "day_of_year",
        "days_in_month",
        "hour",
        "minute",
        "month",
        "pi",
        "time",
        "vector",
        "year",
    }
)
# Without honorLabels a scrape renames what the exporter calls the Pod and its namespace.
_POD_LABELS: Final = frozenset({"exported_pod", "pod", "pod_name"})
_NAMESPACE_LABELS: Final = frozenset({"exported_namespace", "namespace"})
_REGEX_SIGNS: Final = frozenset(".^$*+?()[]{}|\\")


def only_of_own_pods(query: Query, workload: str, namespace: str) -> bool:
    """Tell whether everything a query selects comes from Pods of a workload, and nothing else gives it a result."""
    if any(call.name in _FROM_NOTHING and not is_zero(call) for call in query.calls):
        return False
    return bool(query.selectors) and all(_own(selector, workload, namespace) for selector in query.selectors)


def _own(selector: Selector, workload: str, namespace: str) -> bool:
    pods = [m for m in selector.matchers if m.label in _POD_LABELS and m.operator in {"=", "=~"}]
    for matcher in selector.matchers:
        elsewhere = matcher.label in _NAMESPACE_LABELS and matcher.operator == "=" and matcher.value != namespace
        if elsewhere and namespace:
            return False
    if not pods:
        return metrics.is_of_servers(selector.metric)
    if metrics.is_of_servers(selector.metric) or metrics.is_of_pods(selector.metric):
        return any(_may_name(matcher, workload) for matcher in pods)
    return any(_start(matcher) in {workload, f"{workload}-"} for matcher in pods)


def _may_name(matcher: Matcher, workload: str) -> bool:
    """Tell whether a condition on the Pod's name holds for Pods of a workload, which all begin with its name."""
    start, name = _start(matcher), f"{workload}-"
    return bool(start) and (name.startswith(start) or (matcher.operator == "=" and start.startswith(name)))


def _start(matcher: Matcher) -> str:
    """Return what every name that fits begins with; a whole name for `=`."""
    if matcher.operator == "=":
        return matcher.value
    end = next((place for place, sign in enumerate(matcher.value) if sign in _REGEX_SIGNS), len(matcher.value))
    # What repeats or is optional may be there no time at all; an alternative may begin otherwise.
    if "|" in matcher.value:
        return ""
    return matcher.value[: end - 1] if matcher.value[end : end + 1] in {"*", "?", "{"} else matcher.value[:end]
