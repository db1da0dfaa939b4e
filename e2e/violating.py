"""Objects with one violation each, and what of the message names it."""

from __future__ import annotations

import copy
import uuid
from typing import Any

Json = dict[str, Any]

UNLIMITED = "[nodepools/missing-gpu-limit]"
UNCONSOLIDATED = "[nodepools/consolidation-disabled]"
HIDDEN_ACCESS = "[pods/hidden-gpu-access]"
WILDCARD = "[pods/wildcard-toleration]"

_LABELS = {"team": "search", "cost-center": "cc-1234"}
_SELECTED = [{"tags": {"karpenter.sh/discovery": "prod"}}]


def node_class() -> Json:
    """An EC2NodeClass of a fresh name, without the tags that the bill is split by."""
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": f"gpu-{uuid.uuid4().hex[:8]}"},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@v20260720"}],
            "role": "KarpenterNodeRole-prod",
            "subnetSelectorTerms": _SELECTED,
            "securityGroupSelectorTerms": _SELECTED,
        },
    }


def node_pool() -> Json:
    """A GPU pool of a fresh name, without a limit on its GPUs."""
    name = f"gpu-{uuid.uuid4().hex[:8]}"
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "metadata": {"labels": {"workload": "training", **_LABELS}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name},
                    "requirements": [
                        _requirement("karpenter.k8s.aws/instance-gpu-name", "a100", "h100", "h200"),
                        _requirement("kubernetes.io/arch", "amd64"),
                        _requirement("karpenter.sh/capacity-type", "on-demand"),
                    ],
                    "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}],
                    "expireAfter": "Never",
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "30m",
                "budgets": [{"nodes": "0", "reasons": ["Underutilized", "Drifted"]}],
            },
        },
    }


def _requirement(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def pod(namespace: str, name: str = "sees-all-gpus") -> Json:
    """A Pod that is handed every GPU of its node, and asks for none."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": _LABELS},
        "spec": pod_spec(),
    }


def pod_spec() -> Json:
    """The spec of such a Pod."""
    variable = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
    return {
        "containers": [{"name": "main", "image": "registry.example.com/main:1", "env": [variable]}],
        "terminationGracePeriodSeconds": 0,
    }


def blameless_pod(namespace: str, name: str = "asks-for-a-gpu") -> Json:
    """A Pod that asks for a GPU, and lacks nothing but the toleration that it will be given."""
    asking = copy.deepcopy(pod(namespace, name))
    container = asking["spec"]["containers"][0]
    del container["env"]
    container["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    return asking


def deployment(namespace: str, name: str, spec: Json, replicas: int = 1) -> Json:
    """A Deployment of such Pods."""
    labels = {"app": name, **_LABELS}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
