"""Reading an installation from an API server, and dropping its private content."""

from __future__ import annotations

import base64
import datetime as dt
import pickle
from typing import TYPE_CHECKING

import pytest
from cluster.fake_api_server import Answer, FakeApiServer
from cluster.reflected import connected
from operate.doctor.installed import AUTHORITIES, NOW, secret

from gpugate.webhook.cluster.errors import UnreachableError
from gpugate.webhook.operate.installation import CertificateSecret, Names, Unread, public_parts
from gpugate.webhook.operate.reading import read_installation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpugate.webhook.operate.installation import Installation

ADMISSION = "admissionregistration.k8s.io"


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    """Return an API server with both configurations, the Secret, the Namespace and a foreign webhook configuration."""
    server = FakeApiServer()
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        server.serve(ADMISSION, ("v1",), kind, f"{kind.lower()}s", namespaced=False)
        server.store.put((ADMISSION, f"{kind.lower()}s"), {"metadata": {"name": "gpugate"}, "webhooks": []})
    server.serve("", ("v1",), "Secret", "secrets")
    server.serve("", ("v1",), "Namespace", "namespaces", namespaced=False)
    server.store.put((ADMISSION, "validatingwebhookconfigurations"), {"metadata": {"name": "other"}, "webhooks": []})
    named = {"metadata": {"name": "gpugate-certificates", "namespace": "gpugate"}}
    server.store.put(("", "secrets"), {**secret(), **named})
    server.store.put(("", "namespaces"), {"metadata": {"name": "gpugate"}})
    yield server.start()
    server.stop()


def read(api: FakeApiServer, folder: Path) -> Installation:
    api.answers.append(Answer("/version", body=b'{"gitVersion": "v1.36.3"}'))
    connection = connected(api, folder)
    try:
        return read_installation(connection, Names(), NOW)
    finally:
        connection.close()


def test_an_object_that_is_nested_very_deep_is_read(api: FakeApiServer, tmp_path: Path) -> None:
    """The API server accepts 10,000 levels in managed fields, orjson 1,024."""
    deep = b"[" * 5_000 + b"]" * 5_000
    body = b'{"items": [{"metadata": {"name": "deep", "managedFields": ' + deep + b"}}]}"
    api.answers.append(Answer("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?", body=body))

    found = read(api, tmp_path)

    assert [each["metadata"]["name"] for each in found.others] == ["deep"]  # type: ignore[union-attr]


def test_each_object_exists_or_not(api: FakeApiServer, tmp_path: Path) -> None:
    found = read(api, tmp_path)

    assert found.server == "v1.36.3"
    assert set(found.configurations) == {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
    assert [each["metadata"]["name"] for each in found.others] == ["other"]  # type: ignore[union-attr]
    assert isinstance(found.secret, CertificateSecret)
    assert (found.service, found.lease, found.unread) == (None, None, [])


def test_unreadable_objects_are_not_reported_as_missing(api: FakeApiServer, tmp_path: Path) -> None:
    api.forbidden = {"secrets", "mutatingwebhookconfigurations"}

    found = read(api, tmp_path)

    assert {each.reason for each in found.unread} == {"these credentials may not read it"}
    assert isinstance(found.secret, Unread)
    assert isinstance(found.configurations["MutatingWebhookConfiguration"], Unread)


def test_an_api_server_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    server = FakeApiServer()
    connection = connected(server, tmp_path)

    with pytest.raises(UnreachableError):
        read_installation(connection, Names(), dt.datetime.now(dt.UTC))

    connection.close()
    server.stop()


def test_private_keys_are_dropped() -> None:
    found = public_parts(secret())

    kept = pickle.dumps({name: getattr(found, name) for name in found.__slots__})

    assert found.active == AUTHORITIES.active.certificate
    assert AUTHORITIES.active.key not in kept
    assert b"PRIVATE KEY" not in kept


def test_a_private_key_under_another_name_is_dropped_too() -> None:
    stored = secret()
    stored["data"]["ca.pem"] = base64.b64encode(AUTHORITIES.active.key).decode()

    assert "ca.pem" not in public_parts(stored).public


@pytest.mark.parametrize(
    ("key", "content", "says"),
    [
        ("active.key", b"", "active.key: missing"),
        ("active.crt", b"AAAA", "active.crt, active.key: "),
        ("state.json", b"{", "state.json is not valid JSON"),
    ],
)
def test_a_corrupt_secret_has_a_reason(key: str, content: bytes, says: str) -> None:
    stored = secret()
    stored["data"][key] = base64.b64encode(content).decode()

    found = public_parts(stored)

    assert (says in found.corrupt, found.bundle) == (True, b"")
