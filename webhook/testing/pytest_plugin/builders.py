"""Makes objects with nothing to find in them, so that a test says only what it is about.

`patch` of each is a JSON merge patch (RFC 7386), applied last: null removes a field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Object = dict[str, Any]  # Any: the JSON edge
_LABELS = {"team": "search", "cost-center": "cc-1234"}
_TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def node_pool(
    name: str = "gpu-inference",
    *,
    capacity: str | Sequence[str] = "on-demand",
    gpus: int | str | None = 32,
    workload: str = "inference",
    gpu_names: Sequence[str] = ("t4", "l40s", "a10g"),
    patch: Mapping[str, Any] | None = None,
) -> Object:
    """Make a Karpenter NodePool (karpenter.sh/v1) for GPUs.

    Args:
        name: its name.
        capacity: one capacity type, or several.
        gpus: the most GPUs of all its nodes together; None for no limit.
        workload: what the nodes are for, as a label.
        gpu_names: the accelerators that may be launched, as EC2 instance types are labelled.
        patch: what differs.
    """
    capacities = [capacity] if isinstance(capacity, str) else list(capacity)
    spec: Object = {
        "template": {
            "metadata": {"labels": {"workload": workload, **_LABELS}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                "requirements": [
                    _in("karpenter.k8s.aws/instance-gpu-name", gpu_names),
                    _in("kubernetes.io/arch", ["amd64"]),
                    _in("karpenter.sh/capacity-type", capacities),
                ],
                "taints": [dict(_TAINT)],
            },
        },
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "5m"},
    }
    if gpus is not None:
        spec["limits"] = {"nvidia.com/gpu": str(gpus)}
    return _patched("karpenter.sh/v1", "NodePool", {"name": name}, spec, patch)


def gpu_pod(
    name: str = "model",
    *,
    gpus: int | str = 1,
    namespace: str = "serving",
    labels: Mapping[str, str] | None = None,
    tolerates: bool = True,
    patch: Mapping[str, Any] | None = None,
) -> Object:
    """Make a Pod with one container that has GPUs.

    Args:
        name: its name.
        gpus: the `nvidia.com/gpu` of its container.
        namespace: where it is.
        labels: labels beside those that say who pays.
        tolerates: whether it tolerates the taint of GPU nodes.
        patch: what differs.
    """
    container = {
        "name": "main",
        "image": "registry.example.com/model:1.0.0",
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    spec: Object = {"containers": [container]}
    if tolerates:
        spec["tolerations"] = [dict(_TOLERATION)]
    metadata = {"name": name, "namespace": namespace, "labels": {**_LABELS, **(labels or {})}}
    return _patched("v1", "Pod", metadata, spec, patch)


def scaled_object(  # noqa: PLR0913 -- what tests of scalers differ in, all by name
    name: str = "model",
    *,
    target: str = "model",
    namespace: str = "serving",
    replicas: tuple[int, int] = (1, 8),
    query: str = 'sum(vllm:num_requests_waiting{namespace="serving"})',
    threshold: int | str = 5,
    patch: Mapping[str, Any] | None = None,
) -> Object:
    """Make a KEDA ScaledObject (keda.sh/v1alpha1) that scales a Deployment by a Prometheus query.

    Args:
        name: its name.
        target: the Deployment.
        namespace: where both are.
        replicas: the fewest and the most.
        query: the PromQL of its trigger.
        threshold: the value of the query for each replica.
        patch: what differs.
    """
    server = "http://prometheus.monitoring:9090"
    trigger = {
        "type": "prometheus",
        "metadata": {"serverAddress": server, "query": query, "threshold": str(threshold)},
    }
    spec: Object = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
        "minReplicaCount": replicas[0],
        "maxReplicaCount": replicas[1],
        "fallback": {"failureThreshold": 3, "replicas": replicas[0]},
        "triggers": [trigger],
    }
    return _patched("keda.sh/v1alpha1", "ScaledObject", {"name": name, "namespace": namespace}, spec, patch)


def resource_claim_template(
    name: str = "one-gpu",
    *,
    namespace: str = "serving",
    device_class: str = "gpu.nvidia.com",
    count: int = 1,
    selectors: Sequence[str] = (),
    patch: Mapping[str, Any] | None = None,
) -> Object:
    """Make a ResourceClaimTemplate (resource.k8s.io/v1) that asks for whole GPUs, or what selectors say.

    Args:
        name: its name.
        namespace: where it is.
        device_class: the class of its devices.
        count: how many.
        selectors: CEL expressions that a device must fulfil.
        patch: what differs.
    """
    exactly: Object = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in selectors]
    spec: Object = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    metadata = {"name": name, "namespace": namespace}
    return _patched("resource.k8s.io/v1", "ResourceClaimTemplate", metadata, spec, patch)


def _in(key: str, values: Sequence[str]) -> Object:
    return {"key": key, "operator": "In", "values": list(values)}


def _patched(
    api_version: str, kind: str, metadata: Mapping[str, Any], spec: Object, patch: Mapping[str, Any] | None
) -> Object:
    obj: Object = {"apiVersion": api_version, "kind": kind, "metadata": dict(metadata), "spec": spec}
    if patch is None:
        return obj
    from gpugate.webhook.testing.setup import merged  # noqa: PLC0415 -- few tests need it

    patched = merged(obj, dict(patch))
    return patched if isinstance(patched, dict) else obj
