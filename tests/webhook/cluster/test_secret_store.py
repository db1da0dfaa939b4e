from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.fake_api_server import Answer, status

from gpugate.certs.protocols import ClusterFailure, ConflictError, StoredSecret
from gpugate.webhook.cluster.secret_store import NamedSecret

if TYPE_CHECKING:
    from cluster.fake_api_server import FakeApiServer

    from gpugate.webhook.cluster.connection import Connection

SECRETS = ("", "secrets")
PATH = "/api/v1/namespaces/guard/secrets"


@pytest.fixture
def store(api: FakeApiServer, connection: Connection) -> NamedSecret:
    api.serve("", ("v1",), "Secret", "secrets")
    return NamedSecret(connection, "guard", "certificates")


@pytest.fixture
def stored(store: NamedSecret) -> StoredSecret:
    return store.create({"ca.crt": b"one"})


def test_a_missing_secret_is_none(store: NamedSecret) -> None:
    assert store.read() is None


def test_a_created_secret_is_opaque_and_labelled(api: FakeApiServer, store: NamedSecret, stored: StoredSecret) -> None:
    secret = api.store.get(SECRETS, "guard", "certificates")

    assert stored.data == {"ca.crt": b"one"}
    assert store.read() == stored
    assert secret["type"] == "Opaque"
    # Without managed-by, because Helm sets it by server-side apply.
    assert secret["metadata"]["labels"] == {"app.kubernetes.io/name": "gpugate"}


def test_a_recreated_secret_keeps_its_labels_and_annotations(api: FakeApiServer, store: NamedSecret) -> None:
    metadata_before = {
        "labels": {"team": "ml"},
        "annotations": {"meta.helm.sh/release-name": "a", "gpugate.dev/rotate": "1"},
    }
    api.store.put(SECRETS, {"metadata": {"namespace": "guard", "name": "certificates", **metadata_before}})
    store.read()
    api.store.delete(SECRETS, "guard", "certificates")
    store.read()
    store.create({"ca.crt": b"one"})
    metadata = api.store.get(SECRETS, "guard", "certificates")["metadata"]

    assert metadata["labels"] == metadata_before["labels"]
    assert metadata["annotations"] == {"meta.helm.sh/release-name": "a"}


def test_replace_changes_only_the_data(api: FakeApiServer, store: NamedSecret, stored: StoredSecret) -> None:
    secret = api.store.get(SECRETS, "guard", "certificates")
    extra = {"labels": {"team": "ml"}, "annotations": {"gpugate.dev/rotate": "now"}}
    changed = api.store.put(SECRETS, {**secret, "metadata": {**secret["metadata"], **extra}})
    replaced = store.replace({"ca.crt": b"two", "ca.key": bytes(range(256))}, changed["metadata"]["resourceVersion"])
    secret = api.store.get(SECRETS, "guard", "certificates")

    assert replaced == store.read()
    assert replaced.data == {"ca.crt": b"two", "ca.key": bytes(range(256))}
    assert replaced.annotations == extra["annotations"]
    assert secret["metadata"]["labels"] == extra["labels"]
    assert replaced.version != stored.version


def test_a_secret_without_data_is_empty(api: FakeApiServer, store: NamedSecret) -> None:
    api.store.put(SECRETS, {"metadata": {"namespace": "guard", "name": "certificates"}})
    stored_secret = store.read()

    assert stored_secret is not None
    assert (stored_secret.data, stored_secret.annotations) == ({}, {})


def test_an_existing_secret_is_not_created(store: NamedSecret, stored: StoredSecret) -> None:
    with pytest.raises(
        ConflictError, match="secrets 'certificates' in namespace 'guard' was changed by another client: 409"
    ):
        store.create({"ca.crt": b"another"})
    assert store.read() == stored


def test_a_changed_secret_is_not_replaced(api: FakeApiServer, store: NamedSecret, stored: StoredSecret) -> None:
    api.store.put(SECRETS, api.store.get(SECRETS, "guard", "certificates"))

    with pytest.raises(ConflictError):
        store.replace({}, stored.version)
    assert not api.asked("PUT")


def test_a_deleted_secret_is_not_replaced(api: FakeApiServer, store: NamedSecret, stored: StoredSecret) -> None:
    api.store.delete(SECRETS, "guard", "certificates")

    with pytest.raises(ConflictError):
        store.replace({}, stored.version)


@pytest.mark.parametrize("code", [404, 409, 410])
def test_a_conflict_between_read_and_replace(
    api: FakeApiServer, store: NamedSecret, stored: StoredSecret, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    replace = store._connection.replace

    def replace_late(path: str, body: object) -> bytes:
        api.answers.append(status(PATH, code, "Conflict"))
        return replace(path, body)

    monkeypatch.setattr(store._connection, "replace", replace_late)
    with pytest.raises(ConflictError):
        store.replace({}, stored.version)


@pytest.mark.parametrize("verb", ["get", "create", "update"])
def test_a_missing_permission_is_named(
    api: FakeApiServer, store: NamedSecret, stored: StoredSecret, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    replace = store._connection.replace

    def forbidden(path: str, body: object) -> bytes:
        api.forbidden.add("secrets")
        return replace(path, body)

    monkeypatch.setattr(store._connection, "replace", forbidden)
    if verb != "update":
        api.forbidden.add("secrets")
    calls = {"get": store.read, "create": lambda: store.create({}), "update": lambda: store.replace({}, stored.version)}
    with pytest.raises(
        ClusterFailure, match=f"may not {verb} secrets 'certificates' in namespace 'guard': grant its ServiceAccount"
    ) as error:
        calls[verb]()
    assert not isinstance(error.value, ConflictError)


def test_an_exceeded_quota_is_not_a_missing_permission(api: FakeApiServer, store: NamedSecret) -> None:
    api.answers.append(Answer(PATH, 403, b'{"reason": "Forbidden", "message": "exceeded quota: secrets"}'))

    with pytest.raises(ClusterFailure, match=r"create secrets .*: 403 Forbidden: exceeded quota: secrets$"):
        store.create({})


def test_a_missing_namespace(api: FakeApiServer, store: NamedSecret) -> None:
    api.answers.append(status(PATH, 404, "NotFound"))

    with pytest.raises(ClusterFailure, match="404 NotFound") as error:
        store.create({})
    assert not isinstance(error.value, ConflictError)


def test_a_write_without_a_response_has_an_unknown_result(api: FakeApiServer, store: NamedSecret) -> None:
    api.answers.append(Answer(PATH, cut=True))

    with pytest.raises(ClusterFailure, match="secrets 'certificates' in namespace 'guard' may have been writ"):
        store.create({})


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"metadata": {"resourceVersion": "1"}, "data": {"a": "%"}}'])
def test_a_response_that_is_not_a_secret(api: FakeApiServer, store: NamedSecret, body: bytes) -> None:
    api.answers.append(Answer(PATH, body=body))

    with pytest.raises(ClusterFailure, match="is not from an API server"):
        store.read()


def test_a_secret_over_the_size_limit_is_not_sent(api: FakeApiServer, store: NamedSecret) -> None:
    with pytest.raises(ClusterFailure, match=r"would contain 1,048,577 bytes \(maximum: 1,048,576\)"):
        store.create({"a": bytes(1024 * 1024), "b": b"x"})
    assert not api.requests
