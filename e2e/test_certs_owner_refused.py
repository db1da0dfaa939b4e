"""Test that bundles are published if the API server rejects the owner reference."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from cluster.api import Api
from cluster.connections import Connections
from cluster.control_plane import running_control_plane
from cluster.keeper_account import keeper_connection
from cluster.namespaces import namespace_object

from gpugate.webhook.cluster.live_registration import LiveRegistration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.control_plane import ControlPlane

NAME = "strict"
# Some distributions enable it.
FLAG = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[ControlPlane]:
    with running_control_plane(tmp_path, FLAG) as started:
        yield started


def test_a_bundle_is_published_without_an_owner(strict: ControlPlane, tmp_path: Path) -> None:
    entry = {
        "name": "a.e2e.gpugate.dev",
        "clientConfig": {"url": "https://127.0.0.1:1/x"},
        "rules": [{"apiGroups": ["x"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration: dict[str, Any] = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [entry],
    }
    with closing(Connections(strict.url, strict.ca_file, strict.admin)) as connections:
        api = Api(connections)
        for obj in (namespace_object(NAME), configuration):
            answer = api.create(obj)
            assert answer.ok, answer.message
        with keeper_connection(api, strict, tmp_path, NAME) as keeper:
            registration = LiveRegistration(keeper, NAME, NAME)
            (published,) = registration.read()
            registration.publish(published, b"bundle")
            (published,) = registration.read()
        stored = api.get(configuration)

    assert published.bundles == {entry["name"]: b"bundle"}
    assert "ownerReferences" not in stored["metadata"]
