"""Number of replicas in the manifest of a workload that an autoscaler scales.

## Why is this bad?
Each time the manifest is applied, the number of replicas is reset to the value in the manifest. At peak load this ends GPU
replicas, and the autoscaler starts them again minutes later, on new nodes. At low load it starts replicas that are not needed.

## Instead
Leave `replicas` out of the manifest. The autoscaler's minimum is the number for low load:

```yaml
kind: Deployment
spec:
  # no replicas: the autoscaler sets them
  selector:
    matchLabels:
      app: llm
```

Take care when you remove the line. If `kubectl apply` set `replicas` before, the next apply without the line deletes the field,
and Kubernetes sets it to the default of 1 replica. To prevent this, first run `kubectl apply edit-last-applied` and delete the
line there. The next apply then does not change the number of replicas.

`gpugate check` reports a Deployment or StatefulSet with GPUs if one of the files that it reads contains an autoscaler for it. At
admission, the field can also contain a number that an autoscaler set, or the default. The webhook therefore reports the
field in two cases: a new object has a number other than 1, or an update changes the number. An audit does not report it. Not
reported are:

- `replicas: 0` on a workload with a HorizontalPodAutoscaler, because this value turns the autoscaler off.
- A workload whose ScaledObject is paused, or whose autoscaler has the same minimum and maximum.

## Sources
Kubernetes v1.36 "Horizontal Pod Autoscaling", sections "Migrating Deployments and StatefulSets to horizontal autoscaling" and
"Implicit maintenance-mode deactivation"; argoproj/argo-cd issue 5105; KEDA v2.20.2 `apis/keda/v1alpha1/scaledobject_types.go`
(NeedToBePausedByAnnotation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling._scaled_objects import maximum, minimum
from gpugate.policies.sdk.facts import Known, Need, derived
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS
from gpugate.policies.sdk.objects import DEPLOYMENT, HORIZONTAL_POD_AUTOSCALER, SCALED_OBJECT, STATEFUL_SET, Kind
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import ScaleTarget, by_target, most_for, workload_demand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.policy import AnyContext

_PAUSED: Final = ("autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas")
_SCALERS: Final = (
    Need(
        SCALED_OBJECT, ("metadata.annotations", "spec.maxReplicaCount", "spec.minReplicaCount", "spec.scaleTargetRef")
    ),
    Need(HORIZONTAL_POD_AUTOSCALER, ("spec.maxReplicas", "spec.minReplicas", "spec.scaleTargetRef")),
)


@validates(DEPLOYMENT, STATEFUL_SET, mode=Stance.WARN, needs=(*_SCALERS, *CLAIM_NEEDS))
def check(workload: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report a number of replicas in the manifest of a workload with an autoscaler."""
    replicas = workload["spec", "replicas"]
    number = replicas.integer
    if number is None or not _is_written(workload, number, ctx):
        return
    kind = ctx.request.kind_among((DEPLOYMENT, STATEFUL_SET))
    # `generateName` replaces the name until the API server generates it.
    target = ScaleTarget(kind.group, kind.name, ctx.request.name or ctx.request.generate_name)
    scaler = next(_scalers(target, number, ctx), "")
    at_most = most_for(workload_demand(kind, workload, ctx)) if scaler else Stance.OFF
    if at_most:
        message = f"replicas is {number}, although {scaler} sets the replicas of this {kind.name}"
        hint = "delete replicas from the manifest. If you use kubectl apply, first run kubectl apply edit-last-applied and delete replicas there too; otherwise the next apply sets replicas to 1"
        fix = Patches((Patch("remove", replicas.path, None, "leaves the number of replicas to the autoscaler"),))
        yield Violation(replicas.path, message, at_most, hint, fix)


def _is_written(workload: Field, number: int, ctx: AnyContext) -> bool:
    """Tell whether the author set the number, and not an autoscaler or the API server.

    A stored object has a `resourceVersion`. An object that the API server creates has `managedFields`, and a `uid` when
    it is validated (apiserver v0.36 `pkg/endpoints/handlers/create.go`). A file has none of them. Autoscalers set the
    number through the subresource `scale`, so an update of the object itself that changes it has another sender.
    """
    metadata = workload["metadata"]
    if metadata["resourceVersion"]:
        before = Field(ctx.request.old_object)["spec", "replicas"].integer
        return before is not None and before != number
    return number != 1 or not (metadata["uid"] or metadata["managedFields"])


def _scalers(target: ScaleTarget, number: int, ctx: AnyContext) -> Iterator[str]:
    """Yield the autoscalers that set another number of replicas than the manifest, as text for a message."""
    for need in _SCALERS:
        for scaler in _of(need.kind, target, ctx):
            if need.kind is SCALED_OBJECT:
                annotations = scaler["metadata", "annotations"]
                sets = not any(annotations[name] for name in _PAUSED) and minimum(scaler) < maximum(scaler)
            else:
                least, most = scaler["spec", "minReplicas"].integer, scaler["spec", "maxReplicas"].integer
                sets = bool(number) and (1 if least is None else least) < (most or 0)
            if sets:
                yield f"{need.kind.name} {scaler['metadata', 'name'].text}"


def _of(kind: Kind, target: ScaleTarget, ctx: AnyContext) -> list[Field]:
    fact = ctx.facts.list(kind, ctx.request.namespace)
    if not isinstance(fact, Known):
        return []
    return derived(fact, by_target, ctx, ctx.request.namespace).get(target, [])
