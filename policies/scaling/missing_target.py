"""Autoscaler whose workload does not exist.

## Why is this bad?
Nothing is scaled: KEDA and Kubernetes report an error in the status of the object and change no replicas. The intended workload
gets no more replicas at the peak, and keeps its GPUs when it has no load.

## Instead
Write kind and name of the workload as they are. Without `kind`, KEDA looks for a Deployment:

```yaml
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: StatefulSet
    name: llm
```

The policy is evaluated only if gpugate has read all Deployments, StatefulSets and ReplicaSets: at admission, in an audit, and in
`gpugate check --complete-context`. It reports an autoscaler if a workload of its namespace requests GPUs, or if a query reads
metrics of model servers or GPUs. A HorizontalPodAutoscaler that KEDA made is not reported in addition to its ScaledObject.

## Sources
KEDA v2.20.2 `controllers/keda/scaledobject_controller.go` (checkTargetResourceIsScalable), `pkg/util/k8s.go` (ParseGVKR);
Kubernetes v1.36 `pkg/controller/podautoscaler/horizontal.go` (reconcileAutoscaler: FailedGetScale).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling._scaled_objects import MAKER_NEEDS, is_made_by_keda, measures_gpus
from gpugate.policies.sdk.facts import Known, derived, named, object_doubt
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.objects import HORIZONTAL_POD_AUTOSCALER, REPLICA_SET, SCALED_OBJECT
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import TARGET_KINDS, TARGET_NEEDS, scale_target, workload_demand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.findings import Skip
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.policy import AnyContext


@validates(SCALED_OBJECT, mode=Stance.WARN, needs=TARGET_NEEDS)
def check_scaled_object(scaled_object: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a target that does not exist."""
    yield from _missing(scaled_object, ctx, of_gpus=measures_gpus(ctx))


@validates(HORIZONTAL_POD_AUTOSCALER, mode=Stance.WARN, needs=(*TARGET_NEEDS, *MAKER_NEEDS))
def check_autoscaler(autoscaler: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a target that does not exist, unless KEDA created the autoscaler."""
    if not is_made_by_keda(autoscaler, ctx):
        yield from _missing(autoscaler, ctx, of_gpus=False)


def _missing(scaler: Field, ctx: AnyContext, *, of_gpus: bool) -> Iterator[Violation | Skip]:
    target, namespace = scale_target(scaler), ctx.request.namespace
    kinds = (k for k in TARGET_KINDS if target and (k.group, k.name) == (target.group, target.kind))
    kind = next(kinds, None)
    if target is None or kind is None:
        return
    fact = ctx.facts.list(kind, namespace)
    doubt = object_doubt(fact, kind, target.name)
    if doubt or named(fact, target.name):
        if doubt:
            yield doubt
        return
    others = [workload for target_kind in _NAMES for workload in _with_gpus(target_kind, ctx)]
    if not others and not of_gpus:
        return
    message = f"{target} does not exist in namespace {namespace}"
    same_name = next((kind for kind, name in others if name == target.name), "")
    hint = "write kind and name of an existing workload" + (f": kind: {same_name}" if same_name else "")
    yield Violation(scaler["spec", "scaleTargetRef"].path, message, hint=hint)


def _with_gpus(kind: Kind, ctx: AnyContext) -> tuple[tuple[str, str], ...]:
    """Return kind and name of the known workloads of the namespace that request GPUs."""
    fact = ctx.facts.list(kind, ctx.request.namespace)
    return derived(fact, _NAMES[kind], ctx, ctx.request.namespace) if isinstance(fact, Known) else ()


def _names(kind: Kind, known: Known, ctx: AnyContext) -> tuple[tuple[str, str], ...]:
    return tuple(
        (kind.name, workload["metadata", "name"].text)
        for workload in known.items
        if workload_demand(kind, workload, ctx)
    )


# Without ReplicaSets, because that of a deleted Deployment remains for a moment.
_NAMES: Final = {kind: partial(_names, kind) for kind in TARGET_KINDS if kind is not REPLICA_SET}
