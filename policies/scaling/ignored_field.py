"""ScaledObject with settings that have no effect.

## Why is this bad?
The setting has no effect. A `cooldownPeriod` delays nothing unless the workload scales to zero, and a `metricName` no
longer names a metric. Only the query, the threshold and the behavior of the autoscaler decide how the workload
scales.

## Instead
Delete the setting. To scale down slowly, set `spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown`. KEDA
names the metric of a trigger by its position and type, such as `s0-prometheus`.

- `metricName` has no effect since KEDA 2.12, except in triggers that read a metric of that name from their source.
- `cooldownPeriod`, `initialCooldownPeriod` and the `activation...` values of triggers apply only to scaling between
  zero (or `idleReplicaCount`) and the minimum. They have no effect if `minReplicaCount` is above 0 and
  `idleReplicaCount` is absent.

`pollingInterval` is not reported: KEDA still polls a workload that never scales to zero, and counts failures for the
fallback.

## Sources
KEDA v2.20.2 `CHANGELOG.md` (v2.12.0, #4899), the scalers' metadata in `pkg/scalers`,
`pkg/scaling/executor/scale_scaledobjects.go` (RequestScale, scaleToZeroOrIdle), `pkg/scaling/scale_handler.go`
(getScalerState), `apis/keda/v1alpha1/scaledobject_webhook.go` (the warning on cooldownPeriod).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling._scaled_objects import highest_stance, minimum
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.objects import SCALED_OBJECT
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scale_targets import TARGET_NEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

# Triggers that had their own metricName in v2.9 or overwrite it in v2.20. azure-monitor, aws-cloudwatch,
# huawei-cloudeye and solarwinds read it, and external scalers get all settings.
_WITHOUT_METRIC_NAME: Final = frozenset(
    {
        "azure-blob",
        "azure-data-explorer",
        "azure-log-analytics",
        "cassandra",
        "couchdb",
        "elasticsearch",
        "graphite",
        "influxdb",
        "mongodb",
        "mssql",
        "mysql",
        "opensearch",
        "postgresql",
        "prometheus",
        "rabbitmq",
    }
)
_EXTERNAL: Final = frozenset({"external", "external-mock", "external-push"})


@validates(SCALED_OBJECT, mode=Stance.WARN, needs=TARGET_NEEDS)
def check(scaled_object: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report each setting that KEDA does not read, or that has no effect."""
    at_most = ctx.derived(highest_stance)
    if not at_most:
        return
    for trigger in scaled_object["spec", "triggers"]:
        name = trigger["metadata", "metricName"]
        if name and trigger["type"].text in _WITHOUT_METRIC_NAME:
            message = f"KEDA ignores metricName in a trigger of type {trigger['type'].text}"
            hint = "delete metricName"
            why = "The other settings of the trigger select the metric; KEDA does not read `metricName`."
            yield _ignored(name, message, at_most, hint, why)
    if minimum(scaled_object) > 0 and not scaled_object["spec", "idleReplicaCount"]:
        yield from _on_the_way_to_zero(scaled_object, at_most)


def _on_the_way_to_zero(scaled_object: Field, at_most: Stance) -> Iterator[Violation]:
    spec = scaled_object["spec"]
    minimum_is = f"and minReplicaCount is {minimum(scaled_object)}"
    slow = "delete the setting; to delay scale-down, set advanced.horizontalPodAutoscalerConfig.behavior.scaleDown"
    for name in ("cooldownPeriod", "initialCooldownPeriod"):
        if spec[name]:
            yield _ignored(
                spec[name],
                f"{name} has no effect: KEDA uses it only to scale to 0 replicas, {minimum_is}",
                at_most,
                slow,
                _NO_DELAY,
            )
    activations = [
        member
        for trigger in spec["triggers"]
        if trigger["type"].text not in _EXTERNAL
        for key, member in trigger["metadata"].items()
        if key.startswith("activation")
    ]
    for field in (*activations, spec["advanced", "scalingModifiers", "activationTarget"]):
        if field:
            message = f"{field.path[-1]} has no effect: KEDA uses it only to scale from or to 0 replicas, {minimum_is}"
            yield _ignored(field, message, at_most, "delete the setting", _ALWAYS_ACTIVE)


_NO_DELAY: Final = (
    "The setting does not delay the removal of any Pod: the behavior of the autoscaler decides how fast it scales down."
)
_ALWAYS_ACTIVE: Final = "The workload never scales to zero, so no trigger has to activate it."


def _ignored(field: Field, message: str, at_most: Stance, hint: str, why: str) -> Violation:
    fix = Patches((Patch("remove", field.path, None, "removes a setting that has no effect"),), safe=True)
    return Violation(field.path, message, at_most, hint, fix, why=why)
