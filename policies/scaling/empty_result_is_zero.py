"""Fallback that KEDA does not use when a Prometheus query has no result, because KEDA treats an empty result as 0.

## Why is this bad?
When the series is missing in Prometheus, the workload shrinks to its minimum, even under full load. A series is
missing if the target is not scraped, a label has changed, or an exporter is down. KEDA uses the fallback only if the
query fails.

## Instead
Write `ignoreNullValues: "false"`, so that a query without a result is an error, and the fallback is used:

```yaml
spec:
  minReplicaCount: 1
  maxReplicaCount: 8
  fallback:
    failureThreshold: 3
    replicas: 4
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus.monitoring:9090
        query: sum(vllm:num_requests_waiting{namespace="serving"})
        threshold: "5"
        ignoreNullValues: "false"
```

A trigger is reported if the fallback keeps more replicas than `minReplicaCount`. Otherwise the workload ends at the
minimum with or without the fallback. It is not reported in three cases:

- The query returns a value also without any series (`or vector(0)`, `absent()`), so 0 is intended.
- The workload may scale to zero. Without Pods an empty result is normal.
- A formula combines the triggers.

## Sources
KEDA v2.20.2 `pkg/scalers/prometheus_scaler.go` (ExecutePromQuery: without a result the value is 0, or an error if
`ignoreNullValues` is "false"; its default is "true"), `pkg/fallback/fallback.go` (only after errors); kedacore/keda
issues 3065 (workloads shrank at peak) and 4249.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling._queries import has_result_without_series
from gpugate.policies.scaling._scaled_objects import (
    floor,
    has_formula,
    highest_stance,
    is_false,
    maximum,
    minimum,
    queries,
)
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.objects import SCALED_OBJECT
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import TARGET_NEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

# The behaviors whose fallback is at least the current number of replicas (KEDA v2.20.2 `pkg/fallback/fallback.go`,
# doFallback).
_KEEP_CURRENT: Final = frozenset({"currentReplicas", "currentReplicasIfHigher"})


@validates(SCALED_OBJECT, mode=Stance.WARN, needs=TARGET_NEEDS)
def check(scaled_object: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report each query whose missing result counts as 0 although the fallback keeps more than the minimum."""
    fallback = scaled_object["spec", "fallback"]
    replicas = _replicas_kept(scaled_object, fallback)
    if not replicas or not floor(scaled_object).integer or has_formula(scaled_object):
        return
    at_most = ctx.derived(highest_stance)
    for trigger, query in ctx.derived(queries) if at_most else ():
        setting = trigger["metadata", "ignoreNullValues"]
        if not query.selectors or has_result_without_series(query) or is_false(setting.text.strip()):
            continue
        message = f"a query without a result counts as 0, so the fallback ({replicas}) is not used"
        patch = Patch(
            "set", setting.path, "false", "makes a query without a result an error, so that the fallback is used"
        )
        hint = 'write ignoreNullValues: "false"'
        yield Violation(setting.path, message, at_most, hint, Patches((patch,)))


def _replicas_kept(scaled_object: Field, fallback: Field) -> str:
    """Return the text for the fallback's replicas if they are more than the minimum, else an empty text."""
    least, replicas = minimum(scaled_object), fallback["replicas"].integer
    if maximum(scaled_object) <= least:
        return ""
    if fallback["behavior"].text in _KEEP_CURRENT:
        return "the current replicas"
    if (
        fallback["behavior"].text in {"", "static", "currentReplicasIfLower"}
        and replicas is not None
        and replicas > least
    ):
        return f"{replicas} replicas"
    return ""
