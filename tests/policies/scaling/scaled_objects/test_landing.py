from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.scaling._scaled_objects import Room, shortage
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"
TYPES = load_instance_types()
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: NAME}
spec:
  limits: {LIMITS}
  template:
    metadata: {labels: {node-type: gpu-inference}}
    spec:
      nodeClassRef: {group: GROUP, kind: EC2NodeClass, name: gpu}
      requirements: [{key: KEY, operator: In, values: [VALUE]}]
      taints: [{key: TAINT, value: "true", effect: NoSchedule}]
---
"""
USUAL = {
    "NAME": "a",
    "LIMITS": "nvidia.com/gpu: 8",
    "GROUP": "karpenter.k8s.aws",
    "KEY": "karpenter.k8s.aws/instance-gpu-name",
    "VALUE": "h100",
    "TAINT": "nvidia.com/gpu",
}


def pool(**changes: str) -> str:
    text = POOL
    for key, value in {**USUAL, **changes}.items():
        text = text.replace(key, value)
    return text


def found(context: Contexts, pools: str, spec: dict[str, Any] | None = None, *, complete: bool = True) -> object:
    """What is too little for a hundred Pods of eight GPUs."""
    ctx = context({"kind": "ScaledObject"}, facts=pools, complete=complete)
    ctx = replace(ctx, tables={INSTANCE_TYPES.name: TYPES})
    return shortage(Field({"spec": spec or {}}), "nvidia.com/gpu", 8, 100, ctx)


TAKEN = {
    "any Pod": ({}, {}),
    "a label of its nodes": ({}, {"nodeSelector": {"node-type": "gpu-inference"}}),
    "the pool itself": ({}, {"nodeSelector": {"karpenter.sh/nodepool": "b"}}),
    "a well-known label that it leaves open": ({}, {"nodeSelector": {"topology.kubernetes.io/zone": "us-east-1a"}}),
    "a taint that is tolerated": ({"TAINT": "team"}, {"tolerations": [{"key": "team", "operator": "Exists"}]}),
    "types that are not known": ({"KEY": "node.kubernetes.io/instance-type", "VALUE": "p99.48xlarge"}, {}),
    "another provider": ({"GROUP": "karpenter.azure.com"}, {}),
}


@pytest.mark.parametrize(("changes", "spec"), TAKEN.values(), ids=TAKEN)
def test_a_pool_that_may_take_the_pods_counts(context: Contexts, changes: dict[str, str], spec: dict[str, Any]) -> None:
    assert found(context, pool(**{"NAME": "b", **changes}), spec) == Room(8, ("b",))


RULED_OUT = {
    "a taint": ({"TAINT": "team"}, {}),
    "a label of its nodes": ({}, {"nodeSelector": {"node-type": "gpu-training"}}),
    "a label that its nodes have not": ({}, {"nodeSelector": {"disk": "fast"}}),
    "another pool": ({}, {"nodeSelector": {"karpenter.sh/nodepool": "a"}}),
    "a requirement": ({}, {"nodeSelector": {"karpenter.k8s.aws/instance-gpu-name": "l4"}}),
    "types without a GPU": ({"KEY": "karpenter.k8s.aws/instance-family", "VALUE": "m7i"}, {}),
    "types with too few GPUs": ({"VALUE": "t4g"}, {}),
}


@pytest.mark.parametrize(("changes", "spec"), RULED_OUT.values(), ids=RULED_OUT)
def test_a_pool_that_surely_takes_none_does_not(
    context: Contexts, changes: dict[str, str], spec: dict[str, Any]
) -> None:
    assert found(context, pool(**{"NAME": "b", **changes}), spec) is None


def test_pools_add_up(context: Contexts) -> None:
    assert found(context, pool() + pool(NAME="b", LIMITS="nvidia.com/gpu: 16")) == Room(24, ("a", "b"))


def test_enough_is_no_shortage(context: Contexts) -> None:
    assert found(context, pool(LIMITS="nvidia.com/gpu: 799")) == Room(799, ("a",))
    assert found(context, pool(LIMITS="nvidia.com/gpu: 400") + pool(NAME="b", LIMITS="nvidia.com/gpu: 400")) is None


def test_one_without_a_limit_has_room_for_all(context: Contexts) -> None:
    assert found(context, pool() + pool(NAME="b", LIMITS="cpu: 100")) is None


def test_pools_that_may_be_missing_tell_nothing(context: Contexts) -> None:
    assert found(context, pool(), complete=False) == Skip("not all NodePools are known")
    assert found(context, "", complete=False) == Skip("no nodepools to look up")
