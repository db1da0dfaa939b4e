"""With everything enforced, failures not ignored and nobody there to answer, a cluster still starts and can be helped."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from cluster.ports import free_ports
from cluster.service_account import NAMESPACE
from stub_webhook.certificates import Authority
from stub_webhook.registration import API_VERSION
from violating import blameless_pod, deployment, node_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.api import Api
    from failure_policy.conftest import Registered

Json = dict[str, Any]
EVERYWHERE: Json = {
    "containers": [{"name": "agent", "image": "agent", "securityContext": {"privileged": True}}],
    "tolerations": [{"operator": "Exists"}],
    "hostNetwork": True,
}
AGENTS: Json = {
    "selector": {"matchLabels": {"app": "agent"}},
    "template": {"metadata": {"labels": {"app": "agent"}}, "spec": EVERYWHERE},
}
_OWNER = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "gpu", "uid": "1", "blockOwnerDeletion": True}
_NODE_CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
_ONE_TYPE = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}


def cluster_scoped(api_version: str, kind: str, name: str = "at-start", **members: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **members}


def namespaced(api_version: str, kind: str, namespace: str = "kube-system", **members: Any) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "at-start", "namespace": namespace},
        **members,
    }


ADMIN_ACCESS: Json = {"metadata": {"name": "at-start", "labels": {"resource.kubernetes.io/admin-access": "true"}}}


NEEDED = [
    cluster_scoped("v1", "Namespace"),
    cluster_scoped("v1", "Node", status={"capacity": {"nvidia.com/gpu": "8"}}),
    cluster_scoped(
        "v1",
        "PersistentVolume",
        spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}},
    ),
    cluster_scoped("storage.k8s.io/v1", "StorageClass", provisioner="ebs.csi.aws.com"),
    cluster_scoped("node.k8s.io/v1", "RuntimeClass", handler="nvidia"),
    cluster_scoped("scheduling.k8s.io/v1", "PriorityClass", value=1),
    cluster_scoped("rbac.authorization.k8s.io/v1", "ClusterRole", rules=[]),
    cluster_scoped(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    ),
    cluster_scoped(API_VERSION, "ValidatingWebhookConfiguration"),
    cluster_scoped("authentication.k8s.io/v1", "TokenReview", spec={"token": "none"}),
    cluster_scoped("authorization.k8s.io/v1", "SubjectAccessReview", spec={"user": "a", "nonResourceAttributes": {}})
    # The one kind that may have no name.
    | {"metadata": {}},
    cluster_scoped(
        "resource.k8s.io/v1",
        "ResourceSlice",
        spec={
            "driver": "gpu.nvidia.com",
            "nodeName": "at-start",
            "pool": {"name": "at-start", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    ),
    # As Karpenter makes them; one made by hand is judged.
    cluster_scoped("karpenter.sh/v1", "NodeClaim", spec={"nodeClassRef": _NODE_CLASS, "requirements": [_ONE_TYPE]})
    | {"metadata": {"name": "at-start", "labels": {"karpenter.sh/nodepool": "gpu"}, "ownerReferences": [_OWNER]}},
    namespaced("v1", "ServiceAccount"),
    namespaced("v1", "ConfigMap"),
    namespaced("v1", "Secret"),
    namespaced("v1", "Service", spec={"ports": [{"port": 443}]}),
    namespaced("v1", "Event", involvedObject={"namespace": "kube-system"}),
    namespaced("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", endpoints=[]),
    namespaced("coordination.k8s.io/v1", "Lease", "kube-node-lease"),
    namespaced("v1", "Pod", spec=EVERYWHERE),
    namespaced("apps/v1", "DaemonSet", spec=AGENTS),
    namespaced("apps/v1", "DaemonSet", "default", spec=AGENTS),
    blameless_pod("kube-system"),
    blameless_pod(NAMESPACE),
    deployment(NAMESPACE, "gpugate", blameless_pod(NAMESPACE)["spec"], replicas=2),
]


@pytest.fixture(scope="module")
def gpu_pod(api: Api, tenant: str) -> Json:
    """A GPU Pod that was there before, with a finalizer, as Pods of Jobs have one."""
    made = blameless_pod(tenant, f"trains-{uuid.uuid4().hex[:8]}")
    made["metadata"]["finalizers"] = ["e2e.gpugate.dev/not-yet"]
    answer = api.create(made)
    assert answer.ok, answer.message
    return made


@pytest.fixture(scope="module", autouse=True)
def nobody_answers(registered: Registered, gpu_pod: Json) -> Iterator[None]:
    assert gpu_pod
    with registered(f"https://127.0.0.1:{free_ports(1)[0]}", Authority("nobody").bundle, "Fail"):
        yield


@pytest.mark.parametrize("obj", NEEDED, ids=lambda obj: f"{obj['kind']}-{obj['metadata'].get('namespace', '')}")
def test_what_a_cluster_needs_to_start_is_created(api: Api, obj: Json) -> None:
    answer = api.create(obj, dry_run=True)
    assert answer.ok, answer.message


def test_the_configurations_can_be_taken_away(api: Api) -> None:
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        assert api.delete(cluster_scoped(API_VERSION, kind, "failing.e2e.gpugate.dev"), dry_run=True).ok


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(blameless_pod, id="GPU-Pod"),
        pytest.param(lambda _: node_class(), id="EC2NodeClass"),
        pytest.param(
            lambda _: cluster_scoped("v1", "Namespace") | ADMIN_ACCESS, id="Namespace-for-administrative-claims"
        ),
    ],
)
def test_what_could_be_refused_waits(api: Api, tenant: str, make: Callable[[str], Json]) -> None:
    assert api.create(make(tenant), dry_run=True).code == 500


def test_the_status_of_a_stored_gpu_pod_is_written(api: Api, gpu_pod: Json) -> None:
    answer = api.patch(gpu_pod, {"status": {"message": "said"}}, subresource="status", dry_run=True)
    assert answer.ok, answer.message


def test_a_stored_gpu_pod_is_deleted_and_let_go(api: Api, gpu_pod: Json) -> None:
    assert api.delete(gpu_pod).ok
    assert api.get(gpu_pod)["metadata"]["deletionTimestamp"]
    removed = api.patch(gpu_pod, {"metadata": {"finalizers": None}})
    assert removed.ok, removed.message
