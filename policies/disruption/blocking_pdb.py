"""PodDisruptionBudget that blocks every eviction.

## Why is this bad?
Karpenter cannot drain the node, because the PodDisruptionBudget refuses to let it evict the Pods. Karpenter then
waits, without `terminationGracePeriod` indefinitely. With `maxUnavailable: 0`, `minAvailable: 100%` or a
`minAvailable` of all Pods, Karpenter cannot consolidate GPU nodes or replace them for a new image. When EC2 takes
back a Spot node, its Pods are killed, because they could not be evicted.

## Instead
Allow one Pod at a time to be evicted, for any number of replicas:

```yaml
spec:
  maxUnavailable: 1
```

A training Pod that must not be evicted needs the annotation `karpenter.sh/do-not-disrupt: "true"` and no budget.

The PodDisruptionBudget is denied if it selects a Deployment, StatefulSet or ReplicaSet that requests GPUs. If gpugate
finds no workload that it selects, the finding is a warning. If the workloads request no GPU, nothing is reported. Two
cases are only warnings: a `minAvailable` that blocks only while an autoscaler is at its minimum, and a `minAvailable`
that protects the only Pod of a workload.

## Sources
`kubernetes/api` v0.36 `policy/v1/types.go`; Kubernetes v1.36 `pkg/controller/disruption/disruption.go` (percentages are
rounded up); Karpenter v1.14.1 `pkg/controllers/node/termination/terminator`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gpugate.policies.disruption._replicas import SCALER_NEEDS, Replicas, replicas_of
from gpugate.policies.sdk.facts import Need, object_contexts
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS
from gpugate.policies.sdk.objects import DEPLOYMENT, POD_DISRUPTION_BUDGET
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import TARGET_KINDS, TEMPLATE_FIELDS, ScaleTarget, most_for, workload_demand
from gpugate.policies.sdk.scheduling import selects
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import GpuDemand
    from gpugate.policies.sdk.policy import AnyContext

_FIELDS: Final = ("metadata.ownerReferences", "spec.replicas", "spec.template.metadata.labels", *TEMPLATE_FIELDS)
# The needs of a policy that reads the selected workloads.
SELECTED_NEEDS: Final = (*(Need(kind, _FIELDS) for kind in TARGET_KINDS), *SCALER_NEEDS, *CLAIM_NEEDS)


class Selected(Struct, frozen=True):
    """A workload, its number of Pods, and the accelerators that each Pod requests."""

    name: str
    replicas: Replicas
    demand: GpuDemand


def selected_by(budget: Field, ctx: AnyContext) -> Iterator[Selected]:
    """Yield the known workloads whose Pods a budget selects; those of a Deployment's ReplicaSets count once."""
    selector = budget["spec", "selector"]
    for kind in TARGET_KINDS:
        fact = ctx.facts.list(kind, ctx.request.namespace)
        for around in object_contexts(fact, ctx, ctx.request.namespace):
            labels = around.derived(_labels)
            if labels is None or not selects(selector, labels):
                continue
            workload = around.subject
            target = ScaleTarget(kind.group, kind.name, workload["metadata", "name"].text)
            yield Selected(str(target), replicas_of(workload, target, ctx), around.derived(_DEMAND[kind]))


_DEMAND: Final = {kind: partial(workload_demand, kind) for kind in TARGET_KINDS}


def _labels(workload: Field, _ctx: AnyContext) -> dict[str, str] | None:
    """Return the labels of a workload's Pods; None if a Deployment owns the workload."""
    owners = {owner["kind"].text for owner in workload["metadata", "ownerReferences"]}
    return None if DEPLOYMENT.name in owners else workload["spec", "template", "metadata", "labels"].labels


_HINT: Final = "write maxUnavailable: 1 instead, so that nodes can be drained one Pod at a time"


class _Share(Struct, frozen=True):
    """A number of Pods, or a percentage of them."""

    number: int
    percent: bool

    def __str__(self) -> str:
        return f"{self.number}%" if self.percent else str(self.number)

    def of(self, pods: int) -> int:
        """Return this share of some Pods, rounded up."""
        return -(-self.number * pods // 100) if self.percent else self.number


@validates(POD_DISRUPTION_BUDGET, needs=SELECTED_NEEDS)
def check(budget: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report a budget that allows no eviction at any number of Pods, or at the smallest number."""
    spec = budget["spec"]
    unavailable, available = _share(spec["maxUnavailable"]), _share(spec["minAvailable"])
    if not spec["selector"] or (unavailable is None and available is None):
        return
    selected = tuple(selected_by(budget, ctx))
    at_most = max((most_for(workload.demand) for workload in selected), default=most_for(None))
    if not at_most:
        return
    if unavailable is not None and unavailable.number == 0:
        message = f"maxUnavailable {unavailable} allows no eviction of a Pod{_owner(selected)}: Karpenter cannot drain its node"
        yield Violation(spec["maxUnavailable"].path, message, at_most, _HINT, _one_at_a_time(spec))
    elif available is not None and available.percent and available.number >= 100:
        message = (
            f"minAvailable {available} allows no eviction of a Pod{_owner(selected)}: Karpenter cannot drain its node"
        )
        yield Violation(spec["minAvailable"].path, message, at_most, _HINT, _one_at_a_time(spec))
    elif available is not None and selected:
        yield from _compared(spec, available, selected, at_most)


def _compared(spec: Field, available: _Share, selected: tuple[Selected, ...], at_most: Stance) -> Iterator[Violation]:
    """Compare `minAvailable` with the fewest and the most Pods of all selected workloads."""
    least = sum(workload.replicas.least for workload in selected)
    most = sum(workload.replicas.most for workload in selected)
    path, owner = spec["minAvailable"].path, _owner(selected)
    if most > 1 and available.of(most) >= most:
        certain = all(workload.replicas.certain for workload in selected)
        message = f"minAvailable {available} of at most {most} Pods{owner} allows no eviction"
        ceiling = at_most if certain else min(at_most, Stance.WARN)
        yield Violation(path, message, ceiling, _HINT, _one_at_a_time(spec))
    elif least > 0 and available.of(least) >= least:
        pods = f"the only Pod{owner}" if most == 1 else f"any Pod{owner} while there are only {least}"
        message = f"minAvailable {available} allows no eviction of {pods}"
        yield Violation(path, message, min(at_most, Stance.WARN), "run more replicas than minAvailable, or " + _HINT)


def _owner(selected: tuple[Selected, ...]) -> str:
    asking = [workload.name for workload in selected if workload.demand or workload.demand.unresolved]
    return f" of {asking[0]}" if len(asking) == 1 else ""


def _one_at_a_time(spec: Field) -> Patches:
    reason = "allows one eviction at a time, so that nodes can be drained"
    removed = (Patch("remove", spec["minAvailable"].path, None, reason),) if spec["minAvailable"] else ()
    return Patches((*removed, Patch("set", spec["maxUnavailable"].path, 1, reason)))


def _share(field: Field) -> _Share | None:
    """Return a number or a percentage; None for other values."""
    if field.integer is not None:
        return _Share(field.integer, percent=False)
    digits = field.text.removesuffix("%")
    percent = field.text.endswith("%") and digits.isascii() and digits.isdigit() and len(digits) < 10
    return _Share(int(digits), percent=True) if percent else None
