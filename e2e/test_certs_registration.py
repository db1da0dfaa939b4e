"""Test that publishing a `caBundle` changes nothing else, and that a release can change its entries afterwards."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from cluster.keeper_account import keeper_connection
from cluster.namespaces import namespace_object

from gpugate.certs.pki import certificate_authority
from gpugate.certs.protocols import ConflictError
from gpugate.webhook.cluster.connection import wall_clock
from gpugate.webhook.cluster.live_registration import LiveRegistration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.api import Answer, Api
    from cluster.control_plane import ControlPlane

API_VERSION = "admissionregistration.k8s.io/v1"
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
SERVICE = {"service": {"namespace": "default", "name": "gpugate", "path": "/x"}}
URL = {"url": "https://127.0.0.1:1/x"}
CA_MANAGER = "gpugate-certificates"


@pytest.fixture
def registration(api: Api, control_plane: ControlPlane, tmp_path: Path, namespace: str) -> Iterator[LiveRegistration]:
    with keeper_connection(api, control_plane, tmp_path, namespace) as connection:
        yield LiveRegistration(connection, namespace, namespace)
    for kind in KINDS:
        api.delete(configuration(kind, namespace))


@pytest.fixture(scope="module")
def bundle() -> bytes:
    return certificate_authority("gpugate", now=wall_clock(), lifetime=dt.timedelta(days=1)).certificate


def configuration(kind: str, name: str, *entries: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "webhooks": list(entries)}


def entry(name: str, client_config: dict[str, Any]) -> dict[str, Any]:
    rule = {"apiGroups": ["e2e.gpugate.dev"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]}
    return {
        "name": f"{name}.e2e.gpugate.dev",
        "clientConfig": client_config,
        "rules": [rule],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def without_bundles(obj: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {**item, "clientConfig": {key: value for key, value in item["clientConfig"].items() if key != "caBundle"}}
        for item in obj["webhooks"]
    ]


def publish(registration: LiveRegistration, bundle: bytes) -> None:
    for item in registration.read():
        registration.publish(item, bundle)


def bundles(registration: LiveRegistration, kind: str) -> dict[str, bytes]:
    (matching,) = [item for item in registration.read() if item.kind == kind]
    return {name.partition(".")[0]: value for name, value in matching.bundles.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_only_bundles_and_the_owner_are_written(
    api: Api, registration: LiveRegistration, namespace: str, bundle: bytes, kind: str
) -> None:
    before = api.apply(configuration(kind, namespace, entry("a", SERVICE), entry("b", URL)), "helm").body
    publish(registration, bundle)
    after = api.get(before)

    assert bundles(registration, kind) == {"a": bundle, "b": bundle}
    assert without_bundles(after) == without_bundles(before)
    (owner,) = after["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Namespace", namespace)
    (own_fields,) = [item for item in after["metadata"]["managedFields"] if item["manager"] == CA_MANAGER]
    assert own_fields["operation"] == "Update"
    fields = own_fields["fieldsV1"]
    assert set(fields) == {"f:metadata", "f:webhooks"}
    # One field of each entry is owned, not the entry.
    assert list(fields["f:webhooks"].values()) == [{"f:clientConfig": {"f:caBundle": {}}}] * 2


def test_a_changed_configuration_is_not_written(
    api: Api, registration: LiveRegistration, namespace: str, bundle: bytes
) -> None:
    api.apply(configuration(KINDS[1], namespace, entry("a", SERVICE), entry("b", URL)), "helm")
    (read,) = registration.read()
    changed = api.apply(configuration(KINDS[1], namespace, entry("a", SERVICE)), "helm")

    with pytest.raises(ConflictError):
        registration.publish(read, bundle)
    assert api.get(changed.body) == changed.body


def helm_4(api: Api, before: dict[str, Any], after: dict[str, Any]) -> Answer:
    """Upgrade like Helm 4: server-side apply."""
    assert before["metadata"] == after["metadata"]
    return api.apply(after, "helm")


def helm_3(api: Api, before: dict[str, Any], after: dict[str, Any]) -> Answer:
    """Upgrade like Helm 3: a strategic merge patch with the difference between two releases."""
    remaining = [item["name"] for item in after["webhooks"]]
    removed = [
        {"$patch": "delete", "name": item["name"]} for item in before["webhooks"] if item["name"] not in remaining
    ]
    changed = [
        {**item, "clientConfig": {**({} if "url" in item["clientConfig"] else {"url": None}), **item["clientConfig"]}}
        for item in after["webhooks"]
    ]
    return api.patch(after, {"webhooks": [*removed, *changed]}, "strategic")


UPGRADES = {
    "no change": [entry("a", SERVICE), entry("b", URL)],
    "an entry removed": [entry("a", SERVICE)],
    "every entry removed": [],
    "an entry added": [entry("a", SERVICE), entry("b", URL), entry("c", URL)],
    "a service instead of a URL": [entry("a", SERVICE), entry("b", SERVICE)],
    "another order": [entry("b", URL), entry("a", SERVICE)],
}


@pytest.mark.parametrize("entries", UPGRADES.values(), ids=UPGRADES)
@pytest.mark.parametrize("helm", [helm_3, helm_4])
def test_bundles_remain_when_a_release_changes_its_entries(
    api: Api,
    registration: LiveRegistration,
    namespace: str,
    bundle: bytes,
    entries: list[dict[str, Any]],
    helm: Callable[..., Answer],
) -> None:
    for kind in KINDS:
        before = configuration(kind, namespace, entry("a", SERVICE), entry("b", URL))
        installed = api.apply(before, "helm") if helm is helm_4 else api.create(before)
        assert installed.ok, installed.message
        publish(registration, bundle)
        upgraded = helm(api, before, configuration(kind, namespace, *entries))

        assert upgraded.ok, upgraded.message
        names = {item["name"].partition(".")[0] for item in entries}
        assert bundles(registration, kind) == {name: bundle if name in "ab" else b"" for name in names}


def test_entries_with_applied_bundles_cannot_be_removed(
    api: Api, registration: LiveRegistration, namespace: str
) -> None:
    """Show why bundles are not applied: applying a field of an entry makes the client an owner of the entry."""
    before = configuration(KINDS[1], namespace, entry("a", SERVICE), entry("b", URL))
    assert registration.locations[KINDS[1]].name == api.apply(before, "helm").body["metadata"]["name"]
    names = [item["name"] for item in before["webhooks"]]
    applied = [{"name": name, "clientConfig": {"caBundle": "eA=="}} for name in names]
    assert api.apply(configuration(KINDS[1], namespace, *applied), CA_MANAGER).ok

    upgraded = helm_4(api, before, configuration(KINDS[1], namespace, entry("a", SERVICE)))

    assert upgraded.code == 422
    assert "webhooks[1].sideEffects: Required value" in upgraded.message


def test_both_configurations_are_deleted_with_the_namespace(
    api: Api, registration: LiveRegistration, namespace: str, bundle: bytes
) -> None:
    for kind in KINDS:
        api.apply(configuration(kind, namespace, entry("a", SERVICE)), "helm")
    publish(registration, bundle)
    api.delete(namespace_object(namespace))

    for kind in KINDS:
        api.eventually(configuration(kind, namespace), lambda stored: not stored, seconds=150)
