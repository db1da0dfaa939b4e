"""Pools, Pods and Deployments as harms are made of: nothing is wrong with them but what a harm says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cluster.simulated_types import GPU, ON_DEMAND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Object = dict[str, Any]

# What keeps the pools and Pods of different harms apart.
HARM: Final = "example.com/harm"
GPU_TAINT: Final = {"key": GPU, "value": "true", "effect": "NoSchedule"}
TOLERATION: Final = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
# Soon enough to be watched; only harms about consolidation say otherwise.
CONSOLIDATES: Final = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "2s"}
EMPTY_GOES: Final = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "2s"}
STAYS: Final = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1h"}
_OWNED = {"team": "search", "cost-center": "cc-1234"}
_CLASS = "gpugate.dev/workload-class"


def node_pool(
    name: str,
    types: Sequence[str],
    *,
    workload: str = "inference",
    capacity: Sequence[str] = (ON_DEMAND,),
    requirements: Sequence[Mapping[str, Any]] = (),
    template: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """Write a NodePool on EC2 whose nodes carry its name as the label `HARM`.

    Args:
        name: of the pool.
        types: the instance types it may launch; `requirements` alone choose where there are none.
        workload: the class it is for.
        capacity: capacity types.
        requirements: more of them.
        template: fields of `spec.template.spec`, beside or instead of the GPU taint and `expireAfter: Never`.
        spec: fields of `spec`, beside or instead of a limit of 32 GPUs and a `disruption` that leaves nodes alone.
    """
    chosen = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}] if types else []
    capacity_types = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(capacity)}
    template_spec = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
        "requirements": [capacity_types, *chosen, *requirements],
        "taints": [GPU_TAINT],
        "expireAfter": "Never",
        **(template or {}),
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "limits": {GPU: "32"},
            "disruption": STAYS,
            **spec,
            "template": {
                "metadata": {"labels": {HARM: name, "workload": workload, **_OWNED}},
                "spec": template_spec,
            },
        },
    }


def pod(
    name: str,
    pool: str,
    gpus: int = 1,
    *,
    workload: str = "inference",
    tolerations: Sequence[Mapping[str, str]] = (TOLERATION,),
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """Write a Pod that runs on the nodes of one pool; `gpus` may be 0, `spec` holds more fields."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app": name, _CLASS: workload, **_OWNED},
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "containers": [_container(gpus)],
            "nodeSelector": {HARM: pool},
            "tolerations": list(tolerations),
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


def deployment(name: str, pool: str, replicas: int = 1, gpus: int = 1, **others: Any) -> Object:
    """Write a Deployment of such Pods; `others` are arguments of `pod`."""
    template = pod(name, pool, gpus, **others)
    metadata = {key: value for key, value in template["metadata"].items() if key != "name"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": metadata["labels"]},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": metadata, "spec": template["spec"]},
        },
    }


def _container(gpus: int) -> Object:
    resources: Object = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    if gpus:
        resources["limits"][GPU] = str(gpus)
    return {
        "name": "main",
        "image": "registry.example.com/main:1",
        "args": ["--checkpoints=s3://checkpoints/run-1"],
        "resources": resources,
    }
