"""Objects that API servers take, to change one thing in."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.objects import GroupVersionKind
from gpugate.policies.sdk.platform import Target
from gpugate.webhook.schemas.check import Schemas

if TYPE_CHECKING:
    from collections.abc import Callable

Object = dict[str, Any]

_VALID: dict[str, Object] = {
    "NodePool": {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {
            "weight": 10,
            "limits": {"nvidia.com/gpu": "8", "cpu": 100},
            "disruption": {"consolidateAfter": "30m", "budgets": [{"nodes": "1"}]},
            "template": {
                "metadata": {"labels": {"team": "search"}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                    "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
                    "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
                },
            },
        },
    },
    "NodeClaim": {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "gpu"},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
            "requirements": [],
        },
    },
    "EC2NodeClass": {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "gpu"},
        "spec": {
            "role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@v20260101"}],
            "subnetSelectorTerms": [{"id": "subnet-1"}],
            "securityGroupSelectorTerms": [{"id": "sg-1"}],
            "kubelet": {
                "evictionSoft": {"memory.available": "5%"},
                "evictionSoftGracePeriod": {"memory.available": "1m"},
            },
        },
    },
    "ScaledObject": {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "llm", "namespace": "ml"},
        "spec": {
            "scaleTargetRef": {"name": "llm"},
            "triggers": [{"type": "prometheus", "metadata": {"threshold": "5"}}],
        },
    },
    "ScaledJob": {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledJob",
        "metadata": {"name": "batch", "namespace": "ml"},
        "spec": {
            "jobTargetRef": {
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "main",
                                "ports": [{"containerPort": 80}],
                                "resources": {"limits": {"memory": "1Gi"}},
                            }
                        ]
                    }
                }
            },
            "triggers": [{"type": "redis", "metadata": {}}],
        },
    },
    "ResourceClaim": {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "ml"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
    },
}


@pytest.fixture
def valid() -> Callable[[str], Object]:
    """Return a new valid object of a kind."""
    return lambda kind: copy.deepcopy(_VALID[kind])


@pytest.fixture(scope="session")
def problems() -> Callable[..., dict[str, tuple[str, str]]]:
    """Return what is refused of an object: path -> message and remedy."""
    schemas = Schemas()

    def found(obj: Object, target: Target | None = None, old: Object | None = None) -> dict[str, tuple[str, str]]:
        kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
        told = schemas.problems(obj, kind.group, kind.version, kind.kind, target or Target(), old)
        return {render(problem.path): (problem.message, problem.remedy) for problem in told}

    return found
