from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.pods._placement import NAMES_NODE, named_node, reach
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.platform import Platform, Taint

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

    Contexts = Callable[..., Context[Any]]

ENFORCE, WARN, OFF = Stance.ENFORCE, Stance.WARN, Stance.OFF
TABLES: dict[str, object] = {INSTANCE_TYPES.name: load_instance_types()}
TYPE = "node.kubernetes.io/instance-type"
KEY = "nvidia.com/gpu"


def pod(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, OFF),
        ({"tolerations": [{"key": KEY, "operator": "Exists"}]}, ENFORCE),
        ({"tolerations": [{"operator": "Exists"}]}, ENFORCE),
        ({"tolerations": [{"key": KEY, "value": "present", "effect": "NoSchedule"}]}, ENFORCE),
        ({"tolerations": [{"key": KEY, "effect": "NoSchedule"}]}, ENFORCE),
        ({"tolerations": [{"key": KEY, "value": "other", "effect": "NoSchedule"}]}, OFF),
        ({"tolerations": [{"key": KEY, "operator": "Gt", "value": "0"}]}, OFF),
        ({"nodeSelector": {TYPE: "p5.48xlarge"}}, ENFORCE),
        ({"nodeSelector": {TYPE: "m7i.large"}}, OFF),
        ({"nodeName": "a"}, WARN),
        ({"nodeName": "a", "nodeSelector": {"kubernetes.io/os": "linux"}}, WARN),
        ({"nodeName": "a", "nodeSelector": {TYPE: "m7i.large"}}, OFF),
        ({"nodeName": "a", "nodeSelector": {TYPE: "p5.48xlarge"}}, ENFORCE),
        ({"nodeName": "a", "nodeSelector": {TYPE: "no-such.type"}}, WARN),
    ],
    ids=str,
)
def test_a_pod_reaches_gpu_nodes(context: Contexts, spec: dict[str, Any], expected: Stance) -> None:
    ctx = replace(context(pod(**spec)), tables=TABLES)
    assert reach(ctx.subject, ctx) is expected


NODES = """
apiVersion: v1
kind: Node
metadata: {name: gpu-by-type, labels: {node.kubernetes.io/instance-type: p5.48xlarge}}
---
apiVersion: v1
kind: Node
metadata: {name: gpu-by-label, labels: {nvidia.com/gpu.present: "true"}}
---
apiVersion: v1
kind: Node
metadata: {name: gpu-by-capacity}
status: {capacity: {cpu: "8", amd.com/gpu: "8"}}
---
apiVersion: v1
kind: Node
metadata: {name: cpu, labels: {node.kubernetes.io/instance-type: m7i.large, nvidia.com/gpu.deploy.operands: "false"}}
status: {capacity: {cpu: "2"}}
"""


@pytest.mark.parametrize(
    ("node", "more", "expected"),
    [
        ("gpu-by-type", {}, ENFORCE),
        ("gpu-by-label", {}, ENFORCE),
        ("gpu-by-capacity", {}, ENFORCE),
        ("cpu", {}, OFF),
        ("cpu", {"tolerations": [{"operator": "Exists"}]}, OFF),
        ("another", {}, WARN),
        ("another", {"tolerations": [{"operator": "Exists"}]}, ENFORCE),
    ],
)
def test_a_node_is_looked_up_by_its_name(context: Contexts, node: str, more: dict[str, Any], expected: Stance) -> None:
    ctx = replace(context(pod(nodeName=node, **more), facts=NODES), tables=TABLES)
    assert reach(ctx.subject, ctx) is expected


POOLS = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec: {template: {spec: {requirements: [{key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [h100]}]}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: tainted}
spec:
  template:
    spec:
      requirements: [{key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [h100]}]
      taints: [{key: nvidia.com/gpu, value: h100, effect: NoSchedule}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: cpu}
spec: {template: {spec: {requirements: [{key: karpenter.k8s.aws/instance-category, operator: In, values: [m]}]}}}
"""
OF_VALUE = {"tolerations": [{"key": KEY, "value": "h100"}]}


@pytest.mark.parametrize(
    ("pools", "more", "expected"),
    [
        (["gpu"], {}, ENFORCE),
        (["tainted"], {}, OFF),
        (["tainted"], OF_VALUE, ENFORCE),
        (["gpu", "tainted"], OF_VALUE, ENFORCE),
        (["gpu", "cpu"], {}, OFF),
        (["gpu", "another"], {}, OFF),
        (["cpu"], {}, OFF),
    ],
    ids=str,
)
def test_a_selected_pool_is_looked_up(
    context: Contexts, pools: list[str], more: dict[str, Any], expected: Stance
) -> None:
    term = {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": pools}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    obj = pod(affinity={"nodeAffinity": required}, **more)
    ctx = replace(context(obj, facts=POOLS), tables=TABLES)
    assert reach(ctx.subject, ctx) is expected


def test_a_numeric_taint_of_the_platform_is_compared(context: Contexts) -> None:
    platform = Platform(taints={KEY: (Taint(key="gpus", value="8"),)})
    obj = pod(tolerations=[{"key": "gpus", "operator": "Gt", "value": "4"}])
    ctx = replace(context(obj, platform=platform), tables=TABLES)
    assert reach(ctx.subject, ctx) is ENFORCE


@pytest.mark.parametrize(
    ("obj", "named"),
    [
        (pod(nodeName="a"), True),
        (pod({"phase": "Pending"}, nodeName="a"), True),
        (pod({"conditions": []}, nodeName="a"), True),
        (pod({"conditions": [{"type": "PodScheduled", "status": "True"}]}, nodeName="a"), False),
        (pod(nodeName=""), False),
        (pod(), False),
    ],
    ids=str,
)
def test_the_scheduler_names_nodes_too(obj: dict[str, Any], *, named: bool) -> None:
    assert bool(named_node(Field(obj))) is named
    assert NAMES_NODE.holds(Field(obj), Platform(), "") is named
