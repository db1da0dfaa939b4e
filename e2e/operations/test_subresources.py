"""Requests about a part of a stored object that violates, such as scale, status or eviction."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from violating import HIDDEN_ACCESS, deployment, node_class, node_pool, pod, pod_spec

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook
    from operations.conftest import StoreBefore

    Kubectl = Callable[..., subprocess.CompletedProcess[str]]

Json = dict[str, Any]
PATIENCE_SECONDS = 90
TIME = "2026-07-20T00:00:00Z"
DEBUG = ("--image=registry.example.com/debug:1", "--container=debug", "--attach=false")


def _debugged(api: Api, stored: Json) -> list[str]:
    return [each["name"] for each in api.get(stored)["spec"].get("ephemeralContainers", ())]


def test_a_debug_container_is_added(api: Api, kubectl: Kubectl, namespace: str, store_before: StoreBefore) -> None:
    (stored,) = store_before(pod(namespace))
    ran = kubectl("debug", stored["metadata"]["name"], f"--namespace={namespace}", *DEBUG)
    assert ran.returncode == 0, ran.stderr
    assert _debugged(api, stored) == ["debug"]


def test_a_debug_container_that_sees_all_gpus_is_denied(
    api: Api, kubectl: Kubectl, namespace: str, store_before: StoreBefore
) -> None:
    (stored,) = store_before(pod(namespace))
    seeing = "--env=NVIDIA_VISIBLE_DEVICES=all"
    ran = kubectl("debug", stored["metadata"]["name"], f"--namespace={namespace}", *DEBUG, seeing)
    assert ran.returncode != 0
    assert HIDDEN_ACCESS in ran.stderr
    assert _debugged(api, stored) == []


def test_what_violates_is_scaled(api: Api, kubectl: Kubectl, namespace: str, store_before: StoreBefore) -> None:
    target = deployment(namespace, "target", pod_spec(), replicas=0)
    scaled_object = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "scaler", "namespace": namespace},
        "spec": {"scaleTargetRef": {"name": "target"}, "triggers": [{"type": "prometheus", "metadata": {}}]},
    }
    store_before(target, scaled_object)
    ran = kubectl("scale", "deployment", "target", "--replicas=2", f"--namespace={namespace}")
    assert ran.returncode == 0, ran.stderr
    assert "Warning" not in ran.stderr
    assert api.get(target)["spec"]["replicas"] == 2


SCALE = "nodepools/oversized-static-scale"
MAXIMUM = f"""
apiVersion: gpugate.dev/v1
kind: PolicyConfig
policies:
  {SCALE}:
    params: {{max_per_pool: 64}}
"""


@pytest.fixture
def static_pool(api: Api, webhook: ServedWebhook, store_before: StoreBefore) -> Json:
    """A static pool of four nodes with 8 GPUs each, which gpugate knows, beside the maximum of 64 GPUs."""
    webhook.use(MAXIMUM)
    pool = node_pool()
    del pool["spec"]["disruption"]
    pool["spec"]["replicas"] = 4
    (stored,) = store_before(pool)

    def known() -> bool:
        # Which of the workers answers is chance, and each watches NodePools by itself.
        excessive = {"spec": {"replicas": 500}}
        return not any(api.patch(stored, excessive, subresource="scale", dry_run=True).ok for _ in range(8))

    deadline = time.monotonic() + PATIENCE_SECONDS
    while not known():
        assert time.monotonic() < deadline, "the new NodePool did not become known"
    return stored


@pytest.mark.parametrize(
    ("replicas", "denied"),
    [pytest.param(8, "", id="to the maximum"), pytest.param(9, "9 nodes of up to 8 accelerators", id="above it")],
)
def test_kubectl_scales_a_static_pool_to_the_maximum(
    api: Api, kubectl: Kubectl, static_pool: Json, replicas: int, denied: str
) -> None:
    name = static_pool["metadata"]["name"]
    ran = kubectl("scale", "nodepool", name, f"--replicas={replicas}")
    assert (ran.returncode == 0) is not bool(denied), ran.stderr
    assert denied in ran.stderr
    assert (SCALE in ran.stderr) is bool(denied)
    assert api.get(static_pool)["spec"]["replicas"] == (4 if denied else replicas)


@pytest.mark.parametrize("make", [node_class, pod], ids=["cluster-scoped", "namespaced"])
def test_the_status_of_what_violates_is_written(
    api: Api, namespace: str, store_before: StoreBefore, make: Callable[..., Json]
) -> None:
    (stored,) = store_before(make(namespace) if make is pod else make())
    condition = {"type": "Told", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": TIME}
    answer = api.patch(stored, {"status": {"conditions": [condition]}}, subresource="status")
    assert (answer.ok, answer.warnings) == (True, []), answer.message
    assert "Told" in [each["type"] for each in answer.body["status"]["conditions"]]


def test_a_violating_pod_is_evicted(api: Api, namespace: str, store_before: StoreBefore) -> None:
    (stored,) = store_before(pod(namespace))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": stored["metadata"]["name"]}}
    path = f"/api/v1/namespaces/{namespace}/pods/{stored['metadata']['name']}/eviction"
    answer = api.request("POST", path, eviction)
    assert (answer.ok, answer.warnings) == (True, []), answer.message
    assert api.eventually(stored, lambda left: not left) == {}


def test_a_violating_pod_is_bound_and_runs(
    api: Api, namespace: str, store_before: StoreBefore, gpu_node: Callable[..., Json]
) -> None:
    node = gpu_node()
    (stored,) = store_before(pod(namespace))
    running = api.eventually(stored, lambda found: found["status"].get("phase") == "Running")
    assert running["spec"]["nodeName"] == node["metadata"]["name"]
