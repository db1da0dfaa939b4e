"""Which policies on the creation of GPU Pods report a Pod of a sender."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.pods import bare_gpu_pod, pinned_node_name
from gpugate.policies.sdk.findings import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

MIRROR = {"kubernetes.io/config.mirror": "0f1e2d3c"}
KUBELET = "system:node:gpu-node-1"
CONTROLLERS = "system:serviceaccount:kube-system:"


def owner(kind: str, version: str = "apps/v1") -> list[dict[str, Any]]:
    return [{"apiVersion": version, "kind": kind, "name": "o", "uid": "1", "controller": True}]


@pytest.mark.parametrize(
    ("sender", "metadata", "bare", "pinned"),
    [
        ("developer", {}, True, True),
        ("", {}, True, True),
        ("developer", {"annotations": MIRROR}, True, True),
        (KUBELET, {"annotations": MIRROR, "ownerReferences": owner("Node", "v1")}, False, False),
        ("developer", {"ownerReferences": owner("DaemonSet")}, True, True),
        (f"{CONTROLLERS}daemon-set-controller", {"ownerReferences": owner("DaemonSet")}, False, False),
        (f"{CONTROLLERS}replicaset-controller", {"ownerReferences": owner("ReplicaSet")}, False, True),
        (f"{CONTROLLERS}job-controller", {"ownerReferences": owner("Job", "batch/v1")}, False, True),
        ("system:serviceaccount:gpu-operator:validator", {"ownerReferences": owner("DaemonSet")}, False, False),
        ("system:serviceaccount:airflow:worker", {}, False, False),
        ("system:serviceaccount:ray:operator", {"ownerReferences": owner("RayCluster", "ray.io/v1")}, False, False),
    ],
)
def test_the_sender_decides_what_is_reported(
    context: Callable[..., Context[Any]],
    sender: str,
    metadata: dict[str, Any],
    *,
    bare: bool,
    pinned: bool,
) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "research", **metadata}}

    def is_reported(check: Callable[..., Any], **more: str) -> bool:
        ctx = context({**pod, "spec": {**spec, **more}})
        groups = ("system:nodes",) if sender == KUBELET else ("system:authenticated",)
        ctx.request = replace(ctx.request, user=sender, groups=groups)
        return any(isinstance(item, Violation) for item in check(ctx.subject, ctx))

    reported = (is_reported(bare_gpu_pod.check), is_reported(pinned_node_name.check, nodeName="gpu-node-1"))
    assert reported == (bare, pinned)
