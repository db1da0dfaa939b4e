"""Administrative access to MIG devices: Kubernetes asks for a label of the namespace, gpugate who may set it and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mig_devices as mig
import pytest
from cluster.namespaces import namespace_object
from gpu_pods import IN_EVERY_WORKER, added_tolerations, claims, create, is_running, until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook

    Object = dict[str, Any]

pytestmark = pytest.mark.usefixtures("webhook")

LABEL = "resource.kubernetes.io/admin-access"
MONITORING = """
apiVersion: gpugate.dev/v1
kind: PolicyConfig
policies:
  claims/admin-access:
    params:
      admin_namespaces: [{namespace}]
"""


@pytest.fixture
def use(webhook: ServedWebhook) -> Iterator[Callable[[str], None]]:
    yield webhook.use
    webhook.reset()


@pytest.fixture
def labelled(api: Api, namespace: str) -> str:
    """The namespace, which an administrator has labelled."""
    assert label(api, namespace)
    return namespace


@pytest.fixture
def member(api: Api, namespace: str) -> Iterator[str]:
    """A user who may change namespaces and is in no group of administrators."""
    name = f"{namespace}-namespaces"
    metadata = {"name": name}
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "patch"]}]
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "member"}],
    }
    for obj in (role, binding):
        create(api, obj)
    yield "member"
    for obj in (binding, role):
        api.delete(obj)


def label(api: Api, namespace: str) -> bool:
    ref = namespace_object(namespace)
    return api.patch(ref, {"metadata": {"labels": {LABEL: "true"}}}).ok


def claim(namespace: str, name: str = "all-gpus", *, admin_access: bool = True) -> Object:
    metadata = {"name": name, "namespace": namespace}
    spec = mig.claim_spec(admin_access=admin_access)
    return {"apiVersion": mig.API_VERSION, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def template(namespace: str) -> Object:
    return mig.claim_template(namespace, mig.claim_spec(admin_access=True))


def create_tolerating(api: Api, using: Object) -> Object:
    """Create a Pod when gpugate knows what its claim is for."""
    known = until(
        lambda: api.create(using, dry_run=True), lambda asked: bool(added_tolerations(asked.body)), IN_EVERY_WORKER
    )
    assert added_tolerations(known.body)
    return create(api, using).body


@pytest.mark.parametrize("asking", [claim, template])
def test_kubernetes_refuses_it_in_a_namespace_without_the_label(
    asking: Callable[[str], Object], api: Api, namespace: str
) -> None:
    answer = api.create(asking(namespace))
    assert f"admin access to devices requires the `{LABEL}: true` label" in answer.message


@pytest.mark.parametrize("asking", [claim, template])
def test_gpugate_refuses_it_in_a_labelled_namespace_that_is_not_meant_for_it(
    asking: Callable[[str], Object], api: Api, labelled: str
) -> None:
    answer = api.create(asking(labelled))
    assert answer.code == 403
    assert "it gives access to devices of other claims" in answer.message


def test_a_claim_for_a_device_of_ones_own_needs_no_label(api: Api, namespace: str) -> None:
    assert create(api, claim(namespace, admin_access=False)).ok


def test_a_member_who_labels_a_namespace_is_refused(
    member: str, namespace: str, kubectl: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ended = kubectl("label", "namespace", namespace, f"{LABEL}=true", f"--as={member}")
    assert ended.returncode
    assert f"the label {LABEL} allows claims for GPUs of other namespaces" in ended.stderr


def test_a_member_may_label_a_namespace_with_anything_else(
    member: str, namespace: str, kubectl: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    assert kubectl("label", "namespace", namespace, "stage=test", f"--as={member}").returncode == 0


def test_monitoring_looks_at_a_device_that_another_pod_holds(
    api: Api, labelled: str, use: Callable[[str], None], gpu_node: Callable[..., Object]
) -> None:
    use(MONITORING.format(namespace=labelled))
    with mig.mig_nodes(api, gpu_node) as make_node:
        make_node(1)
        for name, admin_access in (("serving", False), ("monitoring", True)):
            asking = claim(labelled, name, admin_access=admin_access)
            create(api, asking)
            api.eventually(create_tolerating(api, claims(name, labelled, resourceClaimName=name)), is_running)
            (device,) = api.get(asking)["status"]["allocation"]["devices"]["results"]
            assert (device["device"], device.get("adminAccess", False)) == (mig.device_name(0), admin_access)
