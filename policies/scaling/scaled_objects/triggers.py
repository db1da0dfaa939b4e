"""The replicas and triggers of a ScaledObject, as KEDA reads them.

Source: KEDA v2.20.2 `apis/keda/v1alpha1/scaledobject_types.go`, `pkg/scaling/executor/scale_scaledobjects.go`
(GetPausedReplicaCount), `controllers/keda/hpa.go` (newHPAForScaledObject: paused replicas are minimum and maximum).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling.queries import promql
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.scale_targets import most_for, scale_target, target_demand

if TYPE_CHECKING:
    from gpugate.policies.scaling.queries.promql import Query
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

KEDA_MAXIMUM: Final = 100
PAUSED_REPLICAS: Final = "autoscaling.keda.sh/paused-replicas"
# What Go's strconv.ParseInt reads in base 10; KEDA then wants 32 bits.
_INTEGER: Final = re.compile(r"[+-]?0*([0-9]{1,10})")
_GREATEST: Final = 2**31 - 1
_FORMULA: Final = ("spec", "advanced", "scalingModifiers", "formula")


def highest_stance(scaled_object: Field, ctx: AnyContext) -> Stance:
    """Return the highest stance of a finding in a ScaledObject; OFF where its target asks for no GPU, or none is named.

    Take it from `ctx.derived`, for every policy asks.
    """
    target = scale_target(scaled_object)
    return most_for(target_demand(target, ctx)) if target else Stance.OFF


def minimum(scaled_object: Field) -> int:
    """Return the fewest replicas while a trigger is active."""
    return scaled_object["spec", "minReplicaCount"].integer or 0


def maximum(scaled_object: Field) -> int:
    """Return the most replicas."""
    replicas = scaled_object["spec", "maxReplicaCount"].integer
    return KEDA_MAXIMUM if replicas is None else replicas


def paused_at(scaled_object: Field) -> tuple[Field, int] | None:
    """Return the annotation that keeps a fixed number of replicas, and that number; None where KEDA reads none.

    The number holds instead of minimum and maximum, and may be above the maximum.
    """
    annotation = scaled_object["metadata", "annotations", PAUSED_REPLICAS]
    found = _INTEGER.fullmatch(annotation.text)
    if found is None or annotation.text.startswith("-") or int(found[1]) > _GREATEST:
        return None
    return annotation, int(found[1])


def floor(scaled_object: Field) -> Field:
    """Return the field that says how many replicas remain when no trigger is active; absent means 0."""
    idle = scaled_object["spec", "idleReplicaCount"]
    return idle or scaled_object["spec", "minReplicaCount"]


def has_formula(scaled_object: Field) -> bool:
    """Tell whether a formula makes one metric of all triggers, so that no trigger counts by itself."""
    return bool(scaled_object[_FORMULA].text)


def queries(scaled_object: Field, _: AnyContext) -> tuple[tuple[Field, Query], ...]:
    """Return each Prometheus trigger with its query; take it from `ctx.derived`, for several policies ask."""
    return tuple(
        (trigger, promql.read(trigger["metadata", "query"].text))
        for trigger in scaled_object["spec", "triggers"]
        if trigger["type"].text == "prometheus"
    )
