"""Requests about a part of a stored object that violates, such as scale, status or eviction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from violating import HIDDEN_ACCESS, deployment, node_class, pod, pod_spec

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from cluster.api import Api
    from operations.conftest import StoreBefore

    Kubectl = Callable[..., subprocess.CompletedProcess[str]]

Json = dict[str, Any]
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
