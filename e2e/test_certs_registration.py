"""What publishing a `caBundle` leaves as it is, and what a release may do with its entries afterwards."""

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


def entry(name: str, where: dict[str, Any]) -> dict[str, Any]:
    rule = {"apiGroups": ["e2e.gpugate.dev"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]}
    return {
        "name": f"{name}.e2e.gpugate.dev",
        "clientConfig": where,
        "rules": [rule],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def without_bundles(obj: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {**each, "clientConfig": {key: value for key, value in each["clientConfig"].items() if key != "caBundle"}}
        for each in obj["webhooks"]
    ]


def publish(registration: LiveRegistration, bundle: bytes) -> None:
    for each in registration.read():
        registration.publish(each, bundle)


def bundles(registration: LiveRegistration, kind: str) -> dict[str, bytes]:
    (found,) = [each for each in registration.read() if each.kind == kind]
    return {name.partition(".")[0]: value for name, value in found.bundles.items()}


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
    (ours,) = [each for each in after["metadata"]["managedFields"] if each["manager"] == CA_MANAGER]
    assert ours["operation"] == "Update"
    fields = ours["fieldsV1"]
    assert set(fields) == {"f:metadata", "f:webhooks"}
    # Of each entry one field, and not the entry itself.
    assert list(fields["f:webhooks"].values()) == [{"f:clientConfig": {"f:caBundle": {}}}] * 2


def test_what_was_changed_since_it_was_read_is_not_written(
    api: Api, registration: LiveRegistration, namespace: str, bundle: bytes
) -> None:
    api.apply(configuration(KINDS[1], namespace, entry("a", SERVICE), entry("b", URL)), "helm")
    (read,) = registration.read()
    changed = api.apply(configuration(KINDS[1], namespace, entry("a", SERVICE)), "helm")

    with pytest.raises(ConflictError):
        registration.publish(read, bundle)
    assert api.get(changed.body) == changed.body


def helm_4(api: Api, before: dict[str, Any], after: dict[str, Any]) -> Answer:
    """An upgrade as Helm 4 does it: server-side apply."""
    assert before["metadata"] == after["metadata"]
    return api.apply(after, "helm")


def helm_3(api: Api, before: dict[str, Any], after: dict[str, Any]) -> Answer:
    """An upgrade as Helm 3 does it: a strategic merge of the difference between two releases."""
    kept = [each["name"] for each in after["webhooks"]]
    gone = [{"$patch": "delete", "name": each["name"]} for each in before["webhooks"] if each["name"] not in kept]
    changed = [
        {**each, "clientConfig": {**({} if "url" in each["clientConfig"] else {"url": None}), **each["clientConfig"]}}
        for each in after["webhooks"]
    ]
    return api.patch(after, {"webhooks": [*gone, *changed]}, "strategic")


UPGRADES = {
    "nothing": [entry("a", SERVICE), entry("b", URL)],
    "an entry removed": [entry("a", SERVICE)],
    "every entry removed": [],
    "an entry added": [entry("a", SERVICE), entry("b", URL), entry("c", URL)],
    "a service for a URL": [entry("a", SERVICE), entry("b", SERVICE)],
    "others first": [entry("b", URL), entry("a", SERVICE)],
}


@pytest.mark.parametrize("entries", UPGRADES.values(), ids=UPGRADES)
@pytest.mark.parametrize("helm", [helm_3, helm_4])
def test_a_release_may_change_its_entries_and_bundles_stay(
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
        names = {each["name"].partition(".")[0] for each in entries}
        assert bundles(registration, kind) == {name: bundle if name in "ab" else b"" for name in names}


def test_with_server_side_apply_an_entry_could_not_be_removed(
    api: Api, registration: LiveRegistration, namespace: str
) -> None:
    """Why bundles are not applied: whoever applies a field of an entry owns the entry."""
    before = configuration(KINDS[1], namespace, entry("a", SERVICE), entry("b", URL))
    assert registration.locations[KINDS[1]].name == api.apply(before, "helm").body["metadata"]["name"]
    names = [each["name"] for each in before["webhooks"]]
    applied = [{"name": name, "clientConfig": {"caBundle": "eA=="}} for name in names]
    assert api.apply(configuration(KINDS[1], namespace, *applied), CA_MANAGER).ok

    upgraded = helm_4(api, before, configuration(KINDS[1], namespace, entry("a", SERVICE)))

    assert upgraded.code == 422
    assert "webhooks[1].sideEffects: Required value" in upgraded.message


def test_both_configurations_go_with_the_namespace(
    api: Api, registration: LiveRegistration, namespace: str, bundle: bytes
) -> None:
    for kind in KINDS:
        api.apply(configuration(kind, namespace, entry("a", SERVICE)), "helm")
    publish(registration, bundle)
    api.delete(namespace_object(namespace))

    for kind in KINDS:
        api.eventually(configuration(kind, namespace), lambda found: not found, seconds=150)
