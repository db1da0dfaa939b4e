"""Who may create a GPU Pod with the name of a node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.pods.pinned_node_name import check
from gpugate.policies.sdk.findings import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

MIRROR = {"kubernetes.io/config.mirror": "0f1e2d3c"}
CONTROLLERS = "system:serviceaccount:kube-system:"


def owner(kind: str, version: str = "apps/v1") -> list[dict[str, Any]]:
    return [{"apiVersion": version, "kind": kind, "name": "o", "uid": "1", "controller": True}]


def pod(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "research", **metadata},
        "spec": {
            "nodeName": "gpu-node-1",
            "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
    }


@pytest.mark.parametrize(
    ("sender", "metadata", "found"),
    [
        ("developer", {}, True),
        ("", {}, True),
        ("developer", {"annotations": MIRROR}, True),
        ("system:node:gpu-node-1", {"annotations": MIRROR, "ownerReferences": owner("Node", "v1")}, False),
        ("developer", {"ownerReferences": owner("DaemonSet")}, True),
        (f"{CONTROLLERS}daemon-set-controller", {"ownerReferences": owner("DaemonSet")}, False),
        (f"{CONTROLLERS}replicaset-controller", {"ownerReferences": owner("ReplicaSet")}, True),
        (f"{CONTROLLERS}job-controller", {"ownerReferences": owner("Job", "batch/v1")}, True),
        ("system:serviceaccount:gpu-operator:validator", {"ownerReferences": owner("DaemonSet")}, False),
        ("system:serviceaccount:airflow:worker", {}, False),
        ("system:serviceaccount:ray:operator", {"ownerReferences": owner("RayCluster", "ray.io/v1")}, False),
    ],
)
def test_the_sender_decides_what_counts(
    context: Callable[..., Context[Any]],
    sender: str,
    metadata: dict[str, Any],
    found: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    ctx = context(pod(**metadata))
    ctx.request = replace(ctx.request, user=sender)
    assert any(isinstance(item, Violation) for item in check(ctx.subject, ctx)) == found


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ({"phase": "Pending"}, True),
        ({"phase": "Running"}, False),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}, False),
    ],
)
def test_the_scheduler_may_have_written_the_node_of_a_stored_pod(
    context: Callable[..., Context[Any]],
    status: dict[str, Any],
    found: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    ctx = context({**pod(), "status": status})
    assert any(check(ctx.subject, ctx)) == found
