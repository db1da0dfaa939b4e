from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from cluster.fake_api_server import Answer, status

from gpugate.certs.protocols import ClusterFailure, ConflictError, LiveConfiguration
from gpugate.webhook.cluster.live_registration import LiveRegistration

if TYPE_CHECKING:
    from cluster.fake_api_server import FakeApiServer

    from gpugate.webhook.cluster.connection import Connection

GROUP = "admissionregistration.k8s.io"
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
VALIDATING = (GROUP, "validatingwebhookconfigurations")
SERVICE = {"service": {"namespace": "guard", "name": "gpugate", "path": "/validate", "port": 443}}
URL = {"url": "https://192.168.1.7:8443/validate"}


@pytest.fixture
def registration(api: FakeApiServer, connection: Connection) -> LiveRegistration:
    for kind in KINDS:
        api.serve(GROUP, ("v1",), kind, f"{kind.lower()}s", namespaced=False)
    api.store.put(("", "namespaces"), {"metadata": {"name": "guard", "uid": "of-guard"}})
    return LiveRegistration(connection, "gpugate", "guard")


def put(api: FakeApiServer, kind: str, *webhooks: dict[str, Any], name: str = "gpugate") -> None:
    api.store.put((GROUP, f"{kind.lower()}s"), {"metadata": {"name": name}, "webhooks": list(webhooks)})


def entry(name: str, client_config: dict[str, Any], ca_bundle: bytes = b"") -> dict[str, Any]:
    bundle = {"caBundle": base64.b64encode(ca_bundle).decode()} if ca_bundle else {}
    return {"name": name, "clientConfig": {**client_config, **bundle}, "sideEffects": "None"}


def validating(api: FakeApiServer) -> dict[str, Any]:
    return api.store.get(VALIDATING, "", "gpugate")


def test_existing_configurations_are_read(api: FakeApiServer, registration: LiveRegistration) -> None:
    assert registration.read() == []

    put(api, KINDS[1], entry("a", SERVICE, b"old"), entry("b", URL))
    put(api, KINDS[0], entry("x", URL), name="another")
    version = validating(api)["metadata"]["resourceVersion"]
    assert registration.read() == [LiveConfiguration(KINDS[1], {"a": b"old", "b": b""}, version)]


def test_complete_objects_are_read(api: FakeApiServer, registration: LiveRegistration) -> None:
    put(api, KINDS[1], entry("a", SERVICE))

    assert registration.read_objects() == [validating(api)]


def test_publish_changes_only_the_bundles(api: FakeApiServer, registration: LiveRegistration) -> None:
    put(api, KINDS[0], entry("m", SERVICE))
    put(api, KINDS[1], entry("a", SERVICE, b"old"), entry("b", URL))
    for configuration in registration.read():
        registration.publish(configuration, b"new")

    assert [configuration.bundles for configuration in registration.read()] == [
        {"m": b"new"},
        {"a": b"new", "b": b"new"},
    ]
    assert validating(api)["webhooks"] == [entry("a", SERVICE, b"new"), entry("b", URL, b"new")]
    assert "fieldManager=gpugate-certificates" in api.asked("PATCH")[0]


def test_the_namespace_is_added_as_owner_and_read_once(api: FakeApiServer, registration: LiveRegistration) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "of-x"}
    api.store.put(
        VALIDATING, {"metadata": {"name": "gpugate", "ownerReferences": [other]}, "webhooks": [entry("a", SERVICE)]}
    )
    for bundle in (b"one", b"two"):
        registration.publish(registration.read()[0], bundle)

    own_reference = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": "guard",
        "uid": "of-guard",
        "blockOwnerDeletion": False,
    }
    assert validating(api)["metadata"]["ownerReferences"] == [other, own_reference]
    assert len(api.asked("/namespaces/guard")) == 1


@pytest.mark.parametrize("code", [403, 404])
def test_a_bundle_is_published_if_the_namespace_is_unreadable(
    api: FakeApiServer, registration: LiveRegistration, code: int
) -> None:
    put(api, KINDS[1], entry("a", SERVICE))
    api.answers.append(status("/namespaces/guard", code, "Forbidden"))
    registration.publish(registration.read()[0], b"new")
    assert registration.read()[0].bundles == {"a": b"new"}

    registration.publish(registration.read()[0], b"newer")
    assert validating(api)["metadata"]["ownerReferences"][0]["uid"] == "of-guard"


def test_a_bundle_is_published_if_the_owner_is_rejected(api: FakeApiServer, registration: LiveRegistration) -> None:
    put(api, KINDS[1], entry("a", SERVICE))
    message = b'{"reason": "Forbidden", "message": "cannot set an ownerRef on a resource you can\'t delete"}'
    api.answers.append(Answer("fieldManager", 403, message))
    registration.publish(registration.read()[0], b"new")

    assert registration.read()[0].bundles == {"a": b"new"}
    assert not validating(api)["metadata"].get("ownerReferences")


def test_a_configuration_without_entries_is_not_patched(api: FakeApiServer, registration: LiveRegistration) -> None:
    put(api, KINDS[1])
    registration.publish(registration.read()[0], b"new")

    assert not api.asked("PATCH")


@pytest.mark.parametrize("change", ["changed", "deleted"])
def test_a_changed_configuration_is_not_patched(
    api: FakeApiServer, registration: LiveRegistration, change: str
) -> None:
    put(api, KINDS[1], entry("a", SERVICE), entry("b", SERVICE))
    read = registration.read()[0]
    if change == "changed":
        put(api, KINDS[1], entry("a", SERVICE))
    else:
        api.store.delete(VALIDATING, "", "gpugate")

    with pytest.raises(ConflictError, match="validatingwebhookconfigurations 'gpugate' was changed by another client"):
        registration.publish(read, b"new")


@pytest.mark.parametrize("verb", ["get", "patch"])
def test_a_missing_permission_is_named(api: FakeApiServer, registration: LiveRegistration, verb: str) -> None:
    put(api, KINDS[1], entry("a", SERVICE))
    read = registration.read()[0]
    api.forbidden.add(VALIDATING[1])
    calls = {"get": registration.read, "patch": lambda: registration.publish(read, b"new")}

    with pytest.raises(ClusterFailure, match=f"gpugate may not {verb} validatingwebhookconfigurations 'gpugate'"):
        calls[verb]()


def test_a_write_without_a_response_has_an_unknown_result(api: FakeApiServer, registration: LiveRegistration) -> None:
    put(api, KINDS[1], entry("a", SERVICE))
    read = registration.read()[0]
    api.answers.append(Answer("fieldManager", cut=True))

    with pytest.raises(ClusterFailure, match="validatingwebhookconfigurations 'gpugate' may have been written"):
        registration.publish(read, b"new")
