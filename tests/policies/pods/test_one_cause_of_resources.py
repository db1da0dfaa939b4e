"""Pods that no instance type can run have one finding: that no node is launched for them, not how they share one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.pods import oversized_requests, unprovisionable
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: gpu
spec:
  limits:
    nvidia.com/gpu: "16"
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [p4d.24xlarge]}
      taints:
        - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
"""


def deployment(cpu: str, gpus: str, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "64Gi"}, "limits": {"nvidia.com/gpu": gpus}}
    pod = {
        "containers": [{"name": "embeddings", "image": "registry.example.com/e:1", "resources": resources}],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        **spec,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "embeddings", "namespace": "serving"},
        "spec": {"template": {"spec": pod}},
    }


@pytest.mark.parametrize(
    ("subject", "oversized", "stays_pending"),
    [
        pytest.param(deployment("8", "1"), False, False, id="a share of the node"),
        pytest.param(deployment("90", "1"), True, False, id="most of the CPU for one of eight GPUs"),
        pytest.param(deployment("100", "1"), False, True, id="more CPU than any type has"),
        pytest.param(deployment("8", "16"), False, True, id="more GPUs than any type has"),
        pytest.param(deployment("8", "16", nodeName="gpu-1"), False, False, id="bound to a node"),
    ],
)
def test_each_mistake_has_one_finding(
    context: Callable[..., Context[Any]], subject: dict[str, Any], *, oversized: bool, stays_pending: bool
) -> None:
    scene = context(subject, facts=POOL, complete=True, params=unprovisionable.Params(), subject=1)
    scene = replace(scene, tables={INSTANCE_TYPES.name: INSTANCE_TYPES.load()})

    findings = [bool(list(policy.check(scene.subject, scene))) for policy in (oversized_requests, unprovisionable)]
    assert findings == [oversized, stays_pending]
