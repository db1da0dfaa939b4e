"""Inference on GPUs with several replicas and no PodDisruptionBudget.

## Why is this bad?
Karpenter can evict all replicas of a model server at the same time. It removes several nodes at once when it
consolidates them, replaces old images or loses Spot capacity. A new replica with a GPU needs minutes to start.

## Instead
Add a budget that selects the Pods:

```yaml
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: llm
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app: llm
```

The policy reports a Deployment or StatefulSet if its workload class is `inference`, it has at least `min_replicas`
replicas, and its Pods request GPUs. If an autoscaler scales the workload, its minimum counts. The policy is evaluated
only if gpugate has read all budgets of the namespace.

## Sources
Karpenter documentation "Disruption" v1.14; `kubernetes/api` v0.36 `policy/v1/types.go` (an empty selector selects every
Pod of the namespace).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.disruption._replicas import SCALER_NEEDS, replicas_of
from gpugate.policies.sdk.facts import Known, Need
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.objects import DEPLOYMENT, POD_DISRUPTION_BUDGET, STATEFUL_SET
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.scale_targets import ScaleTarget, template_contexts
from gpugate.policies.sdk.scheduling import selects
from gpugate.policies.sdk.workload_class import CLASS_NEEDS, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_BUDGETS: Final = Need(POD_DISRUPTION_BUDGET, ("spec.selector",))


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which workloads need a budget.

    Attributes:
        min_replicas: the number of replicas from which a budget is required.
    """

    min_replicas: Annotated[int, msgspec.Meta(ge=2)] = 2


@validates(
    DEPLOYMENT,
    STATEFUL_SET,
    params=Params,
    mode=Stance.WARN,
    needs=(_BUDGETS, *SCALER_NEEDS, *CLASS_NEEDS),
)
def check(workload: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report a workload whose Pods no budget selects."""
    kind = ctx.request.kind_among((DEPLOYMENT, STATEFUL_SET))
    for pods in template_contexts(kind, workload, ctx):
        demand = pods.derived(gpu_demand)
        if not (demand or demand.doubt) or pods.derived(workload_class).name != "inference":
            continue
        if not demand and demand.doubt:
            yield demand.doubt
            continue
        # `generateName` replaces the name until the API server generates it.
        name = ctx.request.name or ctx.request.generate_name
        target = ScaleTarget(kind.group, kind.name, name)
        yield from _without_budget(workload, pods.subject["metadata", "labels"].labels, target, ctx)


def _without_budget(
    workload: Field, labels: dict[str, str], target: ScaleTarget, ctx: Context[Params]
) -> Iterator[Violation | Skip]:
    replicas = replicas_of(workload, target, ctx).least
    if replicas < ctx.params.min_replicas:
        return
    budgets = ctx.facts.list(POD_DISRUPTION_BUDGET, ctx.request.namespace)
    if not isinstance(budgets, Known):
        yield Skip(budgets.reason)
    elif any(selects(budget["spec", "selector"], labels) for budget in budgets.items):
        return
    elif not budgets.complete:
        yield Skip(f"no PodDisruptionBudget was found for {target}, but one may exist")
    else:
        message = f"{target} runs {replicas} replicas, and no PodDisruptionBudget selects its Pods"
        hint = "add a PodDisruptionBudget with maxUnavailable: 1 that selects the labels of these Pods"
        yield Violation(workload["spec", "replicas"].path, message, hint=hint)
