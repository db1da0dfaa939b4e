"""The claims of a StatefulSet's replicas, which are looked up by the name that the controller gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.pods.zonal_volume import check
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements:
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [g]}
        - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1b, us-east-1c]}
"""


def claim(name: str, zone: str) -> str:
    """Return a bound claim and its volume."""
    return f"""
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, namespace: serving}}
spec: {{storageClassName: gp3, volumeName: pv-{name}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {{name: pv-{name}}}
spec:
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{{key: topology.ebs.csi.aws.com/zone, operator: In, values: [{zone}]}}]
"""


def stateful_set(spec: dict[str, object]) -> dict[str, Any]:
    container = {"name": "llm", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {"metadata": {"name": "models"}, "spec": {"storageClassName": "gp3"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "llm", "namespace": "serving"},
        "spec": {"template": {"spec": {"containers": [container]}}, "volumeClaimTemplates": [template], **spec},
    }


CASES: dict[str, tuple[dict[str, object], str, list[str]]] = {
    "the first of two": ({"replicas": 2}, claim("models-llm-0", "us-east-1a"), ["models-llm-0"]),
    "the second of two": (
        {"replicas": 2},
        claim("models-llm-0", "us-east-1b") + claim("models-llm-1", "us-east-1a"),
        ["models-llm-1"],
    ),
    "one that is not used any more": (
        {"replicas": 1},
        claim("models-llm-0", "us-east-1b") + claim("models-llm-1", "us-east-1a"),
        [],
    ),
    "one replica by default": ({}, claim("models-llm-0", "us-east-1a"), ["models-llm-0"]),
    "no replicas": ({"replicas": 0}, claim("models-llm-0", "us-east-1a"), []),
    "replicas that are numbered from five": (
        {"replicas": 1, "ordinals": {"start": 5}},
        claim("models-llm-5", "us-east-1a"),
        ["models-llm-5"],
    ),
    "zones of the NodePool": (
        {"replicas": 2},
        claim("models-llm-0", "us-east-1b") + claim("models-llm-1", "us-east-1c"),
        [],
    ),
    "a claim of another StatefulSet": ({"replicas": 1}, claim("models-chat-0", "us-east-1a"), []),
}


@pytest.mark.parametrize(("spec", "claims", "expected"), CASES.values(), ids=CASES)
def test_the_first_claim_in_another_zone_is_reported(
    context: Contexts, spec: dict[str, object], claims: str, expected: list[str]
) -> None:
    ctx = context(stateful_set(spec), facts=POOL + claims, namespace="serving", subject=1)
    ctx = replace(ctx, tables={INSTANCE_TYPES.name: load_instance_types()})
    found = [item for item in check(ctx.subject, ctx) if isinstance(item, Violation)]
    assert [item.message.split()[1] for item in found] == expected
    assert all(item.path == ("spec", "volumeClaimTemplates", 0, "metadata", "name") for item in found)
