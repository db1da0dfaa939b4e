"""The API server takes what is generated from the catalogue, and asks about what it says, no less and no more."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from cluster.namespaces import namespace_object
from registered_requests import OBJECTS, PODS, example_pods, may_interest, pod
from stub_webhook.registration import register
from stub_webhook.server import Stub

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, PolicyEntry
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.registration.objects import Server, webhook_configurations

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook

    Kubectl = Callable[..., subprocess.CompletedProcess[str]]

RULESET = bind(CATALOG, PolicyConfig(policies={policy.id: PolicyEntry(mode="enforce") for policy in CATALOG}))
NAMED = {"metadata": {"name": "registration.e2e.gpugate.dev"}}


@pytest.fixture(scope="module")
def stub(api: Api, webhook: ServedWebhook, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stub]:
    """A webhook that allows everything, registered for the whole catalogue in the place of gpugate."""
    webhook.unregister()
    with Stub(tmp_path_factory.mktemp("stub")) as running:
        server = Server(url=running.url, ca_bundle=base64.b64decode(running.authority.bundle))
        configurations = [each | NAMED for each in webhook_configurations(RULESET, server)]
        try:
            for configuration in configurations:
                register(api, running, "default", configuration)
            yield running
        finally:
            for configuration in configurations:
                api.delete(configuration)
            webhook.register()


def asked(stub: Stub, name: str, do: Callable[[], Any]) -> set[str]:
    """The paths that a request about an object of this name goes to."""
    stub.calls.clear()
    do()
    return {call.path for call in stub.calls if call.request["name"] == name}


def test_a_pod_of_the_library_is_sent_where_a_concern_holds(api: Api, stub: Stub, namespace: str) -> None:
    wrong, stored = {}, 0
    for name, example in example_pods(namespace):
        answers = []
        sent = asked(stub, "asked", lambda: answers.append(api.create(example, dry_run=True)))  # noqa: B023 -- called at once
        # One that the API server refuses is refused between mutation and validation.
        if answers[0].ok:
            stored += 1
            meant = {path for path in ("/mutate", "/validate") if may_interest(RULESET, answers[0].body, path)}
            if sent != meant:
                wrong[name] = {"sent": sent, "meant": meant}
    assert wrong == {}
    assert stored > 100


@pytest.mark.parametrize(("spec", "paths"), PODS.values(), ids=PODS)
def test_a_pod_is_sent_if_it_can_interest_a_policy(
    api: Api, stub: Stub, namespace: str, spec: dict[str, Any], paths: set[str]
) -> None:
    made = pod(namespace, spec)
    assert asked(stub, "asked", lambda: api.create(made, dry_run=True)) == paths


@pytest.mark.parametrize(("obj", "paths"), OBJECTS.values(), ids=OBJECTS)
def test_an_object_is_sent_if_its_kind_is_judged(
    api: Api, stub: Stub, namespace: str, obj: dict[str, Any], paths: set[str]
) -> None:
    metadata = {"name": "asked", "namespace": namespace, **obj.get("metadata", {})}
    answers = []
    found = asked(stub, "asked", lambda: answers.append(api.create({**obj, "metadata": metadata}, dry_run=True)))
    assert (answers[0].ok, found) == (True, paths), answers[0].message


AGENT = {
    "containers": [{"name": "main", "image": "busybox", "securityContext": {"privileged": True}}],
    "tolerations": [{"operator": "Exists"}],
    "nodeName": "a",
}
OWNED = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": "1", "controller": True}]
}
CONTROLLERS = "system:serviceaccount:kube-system"
MIRROR = {"annotations": {"kubernetes.io/config.mirror": "1"}}


@pytest.mark.parametrize(
    ("sender", "metadata", "paths"),
    [
        pytest.param((f"{CONTROLLERS}:daemon-set-controller", CONTROLLERS), OWNED, set(), id="of-a-DaemonSet"),
        pytest.param(("mallory", "a"), OWNED, {"/validate"}, id="said-to-be-of-a-DaemonSet"),
        pytest.param(("system:node:a", "system:nodes"), MIRROR, set(), id="mirrored"),
        pytest.param(("system:node:a", "a"), MIRROR, {"/validate"}, id="with-the-name-of-a-kubelet"),
        pytest.param(("mallory", "system:nodes"), MIRROR, {"/validate"}, id="said-to-be-mirrored"),
    ],
)
def test_nobody_can_say_of_a_pod_that_it_is_not_to_be_seen(
    kubectl: Kubectl, stub: Stub, namespace: str, sender: tuple[str, str], metadata: dict[str, Any], paths: set[str]
) -> None:
    made = json.dumps(pod(namespace, AGENT, **metadata))
    user, group = sender
    acting = (f"--as={user}", f"--as-group={group}", "--as-group=system:masters")
    done = []
    sent = asked(
        stub, "asked", lambda: done.append(kubectl("create", "--dry-run=server", "-f", "-", *acting, stdin=made))
    )
    assert (done[0].returncode, sent) == (0, paths), done[0].stderr


_NAMES_GPUS = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
# More than an API server evaluates a condition for, if the condition reads all of it; it ignores a failing condition.
LARGE: dict[str, dict[str, Any]] = {
    "resources": {
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "resources": {
                    amount: {f"example.com/resource-{number}": "0" for number in range(4200)}
                    for amount in ("limits", "requests")
                },
                "env": [_NAMES_GPUS],
            }
        ]
    },
    "variables": {
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "env": [*({"name": f"A{number}", "value": "x"} for number in range(20_000)), _NAMES_GPUS],
            }
        ]
    },
    "a path": {
        "containers": [{"name": "main", "image": "busybox", "env": [_NAMES_GPUS]}],
        "volumes": [{"name": "v", "hostPath": {"path": "/a" * 700_000}}],
    },
}


@pytest.mark.parametrize("spec", LARGE.values(), ids=LARGE)
def test_a_pod_does_not_get_past_its_match_conditions_by_its_size(
    api: Api, stub: Stub, namespace: str, spec: dict[str, Any]
) -> None:
    made = pod(namespace, spec)
    answers = []
    sent = asked(stub, "asked", lambda: answers.append(api.create(made, dry_run=True)))
    assert answers[0].ok, answers[0].message
    # No mutation is about variables or paths.
    assert "/validate" in sent


def test_a_deletion_and_a_status_are_not_sent(api: Api, stub: Stub, namespace: str) -> None:
    made = pod(namespace, PODS["asks for a GPU"][0])
    assert api.create(made).ok
    status = {"status": {"message": "said"}}
    assert asked(stub, "asked", lambda: api.patch(made, status, subresource="status")) == set()
    assert asked(stub, "asked", lambda: api.delete(made, gracePeriodSeconds=0)) == set()


def test_a_debug_container_is_sent(api: Api, stub: Stub, namespace: str) -> None:
    made = pod(namespace, {"nodeSelector": {"kubernetes.io/os": "linux"}})
    assert api.create(made).ok
    debug = {"name": "debug", "image": "busybox", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
    added = {"spec": {"ephemeralContainers": [debug]}}
    done = []
    found = asked(
        stub,
        "asked",
        lambda: done.append(api.patch(made, added, kind="strategic", subresource="ephemeralcontainers")),
    )
    assert (done[0].ok, found) == (True, {"/validate"}), done[0].message


@pytest.mark.parametrize("label", ["gpugate.dev/exempt", "kubernetes.io/metadata.name"])
def test_no_label_of_a_namespace_keeps_its_pods_from_being_sent(
    api: Api, stub: Stub, namespace: str, label: str
) -> None:
    labelled = {"metadata": {"labels": {label: "kube-system"}}}
    api.patch(namespace_object(namespace), labelled)
    made = pod(namespace, PODS["asks for a GPU"][0])
    assert asked(stub, "asked", lambda: api.create(made, dry_run=True)) == {"/mutate", "/validate"}


def test_an_excluded_namespace_is_left_alone(api: Api, stub: Stub) -> None:
    made = pod("kube-system", PODS["asks for a GPU"][0])
    assert asked(stub, "asked", lambda: api.create(made, dry_run=True)) == set()
