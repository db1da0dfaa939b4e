"""The workloads whose Pods a PodDisruptionBudget selects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from gpugate.policies.disruption._replicas import SCALER_NEEDS, Replicas, replicas_of
from gpugate.policies.sdk.facts import Need, each
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS
from gpugate.policies.sdk.objects import DEPLOYMENT
from gpugate.policies.sdk.scale_targets import TARGET_KINDS, TEMPLATE_FIELDS, ScaleTarget, workload_demand
from gpugate.policies.sdk.scheduling import selects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import GpuDemand
    from gpugate.policies.sdk.policy import AnyContext

_FIELDS: Final = ("metadata.ownerReferences", "spec.replicas", "spec.template.metadata.labels", *TEMPLATE_FIELDS)
# What a policy that asks for the selected workloads declares that it looks up.
SELECTED_NEEDS: Final = (*(Need(kind, _FIELDS) for kind in TARGET_KINDS), *SCALER_NEEDS, *CLAIM_NEEDS)


@dataclass(frozen=True, slots=True)
class Selected:
    """A workload, how many Pods it has, and the accelerators that each asks for."""

    name: str
    replicas: Replicas
    demand: GpuDemand


def selected_by(budget: Field, ctx: AnyContext) -> Iterator[Selected]:
    """Yield the known workloads whose Pods a budget selects; those of a Deployment's ReplicaSets count once."""
    selector = budget["spec", "selector"]
    for kind in TARGET_KINDS:
        fact = ctx.facts.list(kind, ctx.request.namespace)
        for around in each(fact, ctx, ctx.request.namespace):
            labels = around.derived(_labels)
            if labels is None or not selects(selector, labels):
                continue
            workload = around.subject
            target = ScaleTarget(kind.group, kind.name, workload["metadata", "name"].text)
            yield Selected(str(target), replicas_of(workload, target, ctx), around.derived(_DEMAND[kind]))


_DEMAND: Final = {kind: partial(workload_demand, kind) for kind in TARGET_KINDS}


def _labels(workload: Field, _ctx: AnyContext) -> dict[str, str] | None:
    """Return the labels of a workload's Pods; None where a Deployment has the workload."""
    owners = {owner["kind"].text for owner in workload["metadata", "ownerReferences"]}
    return None if DEPLOYMENT.name in owners else workload["spec", "template", "metadata", "labels"].labels
