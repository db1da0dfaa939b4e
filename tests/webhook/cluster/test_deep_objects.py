"""The API server accepts 10,000 levels of nesting in `managedFields`, of which one object may not hide the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpugate.policies.sdk.objects import POD
from gpugate.webhook.cluster.discovery import path_of
from gpugate.webhook.cluster.lease import LeaseRecord
from gpugate.webhook.cluster.live_registration import LiveRegistration
from gpugate.webhook.cluster.reflector import NEWEST, events, list_all
from gpugate.webhook.cluster.secret_store import NamedSecret

if TYPE_CHECKING:
    from collections.abc import Iterator

LEVELS = 9_000
DEEP = (
    b'{"metadata": {"name": "deep", "resourceVersion": "7", "managedFields": [{"fieldsV1": '
    + b'{"f:a": ' * LEVELS
    + b"{}"
    + b"}" * LEVELS
    + b'}]}, "spec": {"replicas": 3}}'
)
PLAIN = b'{"metadata": {"name": "plain", "resourceVersion": "8"}, "spec": {"replicas": 4}}'


class Answers:
    """A connection whose answers are bytes, because a server in Python cannot write such objects."""

    host = "https://api"

    def read(self, _path: str, _parameters: dict[str, str]) -> bytes:
        return b'{"metadata": {"resourceVersion": "9"}, "items": [' + DEEP + b", " + PLAIN + b"]}"

    def lines(self) -> Iterator[bytes]:
        for obj in (DEEP, PLAIN):
            yield b'{"type": "ADDED", "object": ' + obj + b"}"


def replicas(obj: dict[str, Any]) -> tuple[str, int]:
    return obj["metadata"]["name"], obj["spec"]["replicas"]


def test_a_list_has_every_object() -> None:
    found, _ = list_all(Answers(), "/apis/apps/v1/deployments", NEWEST, replicas)  # type: ignore[arg-type]
    assert found == [("deep", 3), ("plain", 4)]


def test_a_watch_has_every_event() -> None:
    found = [(event.revision, *replicas(event.object)) for event in events(Answers())]  # type: ignore[arg-type]
    assert found == [("7", "deep", 3), ("8", "plain", 4)]


class Stored:
    """A connection to an API server that has one object, with deep managed fields; it records what is written."""

    host = "https://api"

    def __init__(self, members: bytes) -> None:
        self._answer = DEEP.removesuffix(b'"spec": {"replicas": 3}}') + members + b"}"
        self.written: dict[str, Any] = {}

    def read(self, _path: str, _parameters: dict[str, str]) -> bytes:
        return self._answer

    def replace(self, _path: str, body: dict[str, Any]) -> bytes:
        self.written = body
        return self._answer


def test_a_secret_is_read_and_replaced() -> None:
    connection = Stored(b'"type": "Opaque", "data": {"ca.crt": "b25l"}')
    store = NamedSecret(connection, "guard", "certificates")  # type: ignore[arg-type]
    read = store.read()
    assert read is not None
    assert read.data == {"ca.crt": b"one"}

    store.replace({"ca.crt": b"two"}, read.version)
    assert (connection.written["type"], connection.written["data"]) == ("Opaque", {"ca.crt": "dHdv"})
    assert connection.written["metadata"]["name"] == "deep"


def test_webhook_configurations_are_read() -> None:
    connection = Stored(b'"webhooks": [{"name": "a", "clientConfig": {"caBundle": "b2xk"}}]')
    registration = LiveRegistration(connection, "gpugate", "guard")  # type: ignore[arg-type]

    assert [dict(found.bundles) for found in registration.read()] == [{"a": b"old"}] * 2
    assert [obj["webhooks"][0]["name"] for obj in registration.read_objects()] == ["a", "a"]


def test_a_lease_is_read() -> None:
    record = LeaseRecord.read(Stored(b'"spec": {"holderIdentity": "x"}')._answer)
    assert (record.version, record.spec.holder) == ("7", "x")


def test_a_kind_is_discovered() -> None:
    connection = Stored(b'"resources": [{"name": "pods", "kind": "Pod", "verbs": ["list", "watch"]}]')
    assert path_of(connection, POD) == "/api/v1/pods"  # type: ignore[arg-type]
