"""HorizontalPodAutoscaler and ScaledObject, or two ScaledObjects, that scale one workload.

## Why is this bad?
Kubernetes stops both autoscalers: each reports `AmbiguousSelector`, and no metric scales the workload. The workload
no longer follows the load. Only the bounds still apply, and if the minimum of one autoscaler is above the maximum of
the other, the number of replicas goes up and down continuously. KEDA creates a HorizontalPodAutoscaler for every
ScaledObject, so two exist. KEDA's webhook refuses a ScaledObject if a HorizontalPodAutoscaler exists. It does not see
a HorizontalPodAutoscaler that is created later.

## Instead
Delete the HorizontalPodAutoscaler, and move its metrics to the triggers of the ScaledObject. To let KEDA take it
over, annotate the ScaledObject with `scaledobject.keda.sh/transfer-hpa-ownership: "true"` and name the autoscaler in
`spec.advanced.horizontalPodAutoscalerConfig.name`. The annotation `validations.keda.sh/hpa-ownership: "false"` on the
autoscaler only disables the check of KEDA's webhook, so it changes nothing here.

The object is denied if the workload requests GPUs. It gets a warning if gpugate does not find the workload. Nothing
is reported if the workload requests no GPU.

## Sources
KEDA v2.20.2 `apis/keda/v1alpha1/scaledobject_webhook.go` (verifyHpas, verifyScaledObjects),
`config/webhooks/validation_webhooks.yaml` (it does not watch autoscalers), `apis/keda/v1alpha1/scaledobject_types.go`
(annotations); Kubernetes v1.36 `pkg/controller/podautoscaler/horizontal.go` (reconcileAutoscaler); AmbiguousSelector is
there since v1.26 (kubernetes/kubernetes#112011).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling._scaled_objects import HPA_NAME, autoscaler_names
from gpugate.policies.sdk.facts import Known, Need, derived
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Other, Skip, Stance, Violation
from gpugate.policies.sdk.objects import HORIZONTAL_POD_AUTOSCALER, SCALED_OBJECT, Kind
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import TARGET_NEEDS, by_target, most_for, scale_target, target_demand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scale_targets import ScaleTarget

_TRANSFER: Final = "scaledobject.keda.sh/transfer-hpa-ownership"
_SCALED_OBJECTS: Final = Need(
    SCALED_OBJECT,
    ("metadata.annotations", "spec.scaleTargetRef", "spec.advanced.horizontalPodAutoscalerConfig.name"),
)
_AUTOSCALERS: Final = Need(
    HORIZONTAL_POD_AUTOSCALER,
    ("metadata.ownerReferences", "spec.scaleTargetRef"),
)


@validates(SCALED_OBJECT, needs=(_SCALED_OBJECTS, _AUTOSCALERS, *TARGET_NEEDS))
def check_scaled_object(scaled_object: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report the autoscalers, and the other ScaledObjects, of the same workload."""
    target, at_most = _target_and_mode(scaled_object, ctx)
    if target is None or not at_most:
        return
    own = ctx.request.shown_name
    others = tuple(_scaling(target, SCALED_OBJECT, ctx))
    known = [other for other in others if not isinstance(other, Skip)]
    for other in _scaling(target, HORIZONTAL_POD_AUTOSCALER, ctx):
        if isinstance(other, Skip):
            yield other
        elif _counts(other, [scaled_object, Field(ctx.request.old_object), *known]) and not _takes_over(
            scaled_object, other
        ):
            conflict = _conflict(scaled_object, f"HorizontalPodAutoscaler {_name(other)}", own, target, at_most)
            yield replace(conflict, others=(_other(HORIZONTAL_POD_AUTOSCALER, _name(other), ctx),))
    for other in others:
        if isinstance(other, Skip):
            yield other
        elif _name(other) != ctx.request.name:
            message = f"ScaledObject {own} and ScaledObject {_name(other)} both scale {target}"
            yield Violation(
                _reference(scaled_object),
                message,
                at_most,
                "move the triggers of both to one ScaledObject",
                others=(_other(SCALED_OBJECT, _name(other), ctx),),
                follows=_name(other) < ctx.request.name,
            )


@validates(HORIZONTAL_POD_AUTOSCALER, needs=(_SCALED_OBJECTS, *TARGET_NEEDS))
def check_autoscaler(autoscaler: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report the ScaledObjects of the same workload."""
    target, at_most = _target_and_mode(autoscaler, ctx)
    if target is None or not at_most:
        return
    others = tuple(_scaling(target, SCALED_OBJECT, ctx))
    if not _counts(autoscaler, [other for other in others if not isinstance(other, Skip)]):
        return
    own = f"HorizontalPodAutoscaler {ctx.request.shown_name}"
    for other in others:
        if isinstance(other, Skip):
            yield other
        elif not _takes_over(other, autoscaler):
            conflict = _conflict(autoscaler, own, _name(other), target, at_most)
            yield replace(conflict, others=(_other(SCALED_OBJECT, _name(other), ctx),), follows=True)


def _target_and_mode(scaler: Field, ctx: AnyContext) -> tuple[ScaleTarget | None, Stance]:
    target = scale_target(scaler)
    return target, most_for(target_demand(target, ctx)) if target else Stance.OFF


def _scaling(target: ScaleTarget, kind: Kind, ctx: AnyContext) -> Iterator[Field | Skip]:
    """Yield the known objects of a kind that scale a target."""
    fact = ctx.facts.list(kind, ctx.request.namespace)
    if isinstance(fact, Known):
        yield from derived(fact, by_target, ctx, ctx.request.namespace).get(target, ())
    else:
        yield Skip(fact.reason)


def _counts(autoscaler: Field, scaled_objects: list[Field]) -> bool:
    """Tell whether an autoscaler is not one that KEDA created for a ScaledObject, which is evaluated itself.

    Anyone can write a ScaledObject as its owner. KEDA's autoscaler has the name that KEDA gives it. No other autoscaler
    can have that name, and KEDA overwrites an existing one (KEDA v2.20.2 `controllers/keda/hpa.go`, getHPAName,
    updateHPAIfNeeded).
    """
    owners = autoscaler["metadata", "ownerReferences"]
    named = {owner["name"].text for owner in owners if owner["kind"].text == SCALED_OBJECT.name}
    # A name that the API server generates is known when the object is validated.
    own = _name(autoscaler) or autoscaler["metadata", "generateName"].text
    return not any(
        _name(scaled_object) in named and own in autoscaler_names(scaled_object) for scaled_object in scaled_objects
    )


def _takes_over(scaled_object: Field, autoscaler: Field) -> bool:
    transfers = scaled_object["metadata", "annotations", _TRANSFER].text == "true"
    return transfers and scaled_object[HPA_NAME].text == _name(autoscaler)


def _conflict(evaluated: Field, autoscaler: str, scaled_object: str, target: ScaleTarget, at_most: Stance) -> Violation:
    message = f"{autoscaler} and ScaledObject {scaled_object} both scale {target}"
    hint = (
        f"move the metrics of {autoscaler} to triggers of the ScaledObject, then delete {autoscaler}: KEDA creates one"
    )
    return Violation(_reference(evaluated), message, at_most, hint)


def _other(kind: Kind, name: str, ctx: AnyContext) -> Other:
    return Other(kind.name, ctx.request.namespace, name)


def _reference(scaler: Field) -> tuple[str | int, ...]:
    return scaler["spec", "scaleTargetRef"].path


def _name(obj: Field) -> str:
    return obj["metadata", "name"].text
