"""What a ScaledObject is given where it says nothing, when the platform turns it on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.findings import Patch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_BY_UTILISATION: Final = frozenset({"cpu", "memory"})


def maximum(scaled_object: Field, replicas: int) -> Iterator[Patch]:
    """Set `maxReplicaCount`."""
    field = scaled_object["spec", "maxReplicaCount"]
    if not field:
        reason = f"sets maxReplicaCount: {replicas}, because KEDA takes 100 where it is absent"
        yield Patch("set", field.path, replicas, reason)


def fallback(scaled_object: Field) -> Iterator[Patch]:
    """Set `fallback`, so that replicas do not freeze when the metric is lost.

    Only where a trigger other than cpu and memory is of type AverageValue, which is the default: before v2.18 KEDA
    refuses a fallback for others, and since then it has none for type Value while no replica is ready (v2.20.2
    `CHANGELOG.md`, `pkg/fallback/fallback.go`).
    """
    spec = scaled_object["spec"]
    usable = any(
        trigger["type"].text not in _BY_UTILISATION and trigger["metricType"].text in {"", "AverageValue"}
        for trigger in spec["triggers"]
    )
    if usable and not spec["fallback"]:
        replicas = max(1, spec["minReplicaCount"].integer or 0)
        reason = f"sets a fallback of {replicas} replicas for the time a metric is lost"
        yield Patch("set", spec["fallback"].path, {"failureThreshold": 3, "replicas": replicas}, reason)


def stabilization(scaled_object: Field, seconds: int) -> Iterator[Patch]:
    """Set the window over which scaling down is damped."""
    behavior = scaled_object["spec", "advanced", "horizontalPodAutoscalerConfig", "behavior"]
    if not behavior:
        reason = f"waits {seconds} s before scaling down, because GPU Pods are slow to start"
        yield Patch("set", behavior.path, {"scaleDown": {"stabilizationWindowSeconds": seconds}}, reason)
