"""The control plane: what it serves and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.api import Api

SERVED = (
    ("karpenter.sh/v1", "NodePool"),
    ("karpenter.sh/v1beta1", "NodePool"),
    ("karpenter.sh/v1alpha5", "Provisioner"),
    ("karpenter.k8s.aws/v1", "EC2NodeClass"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("kubeflow.org/v1", "PyTorchJob"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("resource.k8s.io/v1beta1", "ResourceClaim"),
)


@pytest.mark.parametrize(("api_version", "kind"), SERVED)
def test_a_kind_is_served(api: Api, api_version: str, kind: str) -> None:
    assert api.served(api_version, kind)


def test_a_kind_that_is_not_served_is_said_as_kubectl_says_it(api: Api) -> None:
    answer = api.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}})
    assert (answer.code, answer.message) == (404, 'no matches for kind "Widget" in version "example.com/v1"')


def test_real_definitions_are_those_of_the_project(api: Api) -> None:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "one"}, "spec": {}}
    assert "spec.template: Required value" in api.create(pool).message


def test_server_and_client_are_of_one_version(kubectl: Callable[..., Any]) -> None:
    assert kubectl("version").stdout.count("v1.36.3") == 2


def test_warnings_of_the_server_are_read(api: Api) -> None:
    metadata = {"name": "one", "namespace": "default"}
    answer = api.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "dta": {}, "größe": 1}, dry_run=True
    )
    assert sorted(answer.warnings) == ['unknown field "dta"', 'unknown field "größe"']


def test_a_pod_runs_on_a_simulated_node(api: Api, namespace: str, gpu_node: Callable[..., dict[str, Any]]) -> None:
    node = gpu_node(labels={"only-for": namespace}, capacity={"nvidia.com/gpu": "1"})
    container = {"name": "main", "image": "example.com/main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"containers": [container], "nodeSelector": {"only-for": namespace}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": namespace}, "spec": spec}
    assert api.create(pod).ok
    running = api.eventually(pod, lambda found: found["status"]["phase"] == "Running")
    assert running["spec"]["nodeName"] == node["metadata"]["name"]
