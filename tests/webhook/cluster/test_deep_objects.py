"""The API server accepts 10,000 levels of nesting in `managedFields`, of which one object may not hide the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpugate.webhook.cluster.reflector import NEWEST, events, list_all

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
