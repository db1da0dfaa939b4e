from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpugate.webhook.audit.live import Listing
from gpugate.webhook.cluster.errors import ApiError, UnreachableError

NAMES = ["a/1", "a-b/1", "a/2", "b/1", "b/2", "c/1", "c/2"]
# The order of the keys in etcd, in which a dash comes before the slash behind a namespace.
STORED = sorted(NAMES)


@dataclass
class Server:
    """Answers pages; `gone` is the call (from 1) at which a page is no longer to be had, `token` where to go on."""

    names: list[str] = field(default_factory=lambda: list(STORED))
    gone: tuple[int, ...] = ()
    token: bool = False
    calls: list[str] = field(default_factory=list)

    def get(self, _: str, parameters: dict[str, str]) -> bytes:
        token = parameters.get("continue", "")
        self.calls.append(token)
        begin = int(token or 0)
        if len(self.calls) in self.gone:
            raise ApiError(410, "Expired", "too old", token=str(begin) if self.token else "")
        end = begin + int(parameters["limit"])
        items = [
            {"metadata": dict(zip(("namespace", "name"), name.split("/"), strict=True))}
            for name in self.names[begin:end]
        ]
        metadata: dict[str, Any] = {"resourceVersion": "1"}
        if end < len(self.names):
            metadata |= {"continue": str(end), "remainingItemCount": len(self.names) - end}
        return json.dumps({"metadata": metadata, "items": items}).encode()


def read(server: Server, limit: int = 2) -> list[str]:
    found = Listing(server.get, "/api/v1/pods", limit).objects()
    return ["/".join(obj["metadata"][key] for key in ("namespace", "name")) for obj in found]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 500])
def test_every_object_is_read_once(limit: int) -> None:
    assert read(Server(), limit) == STORED


def test_an_empty_list_has_no_objects() -> None:
    assert read(Server([])) == []


@pytest.mark.parametrize("token", [False, True], ids=["begins-again", "goes-on"])
@pytest.mark.parametrize("gone", [(2,), (3,), (2, 5), (4,)])
def test_a_page_that_is_gone_makes_nothing_come_twice(gone: tuple[int, ...], token: bool) -> None:  # noqa: FBT001 -- one of two cases
    assert read(Server(gone=gone, token=token)) == STORED


def test_a_list_goes_on_where_the_server_says() -> None:
    server = Server(gone=(3,), token=True)

    read(server)

    assert server.calls == ["", "2", "4", "4", "6"]


def test_a_list_that_is_gone_again_and_again_ends() -> None:
    with pytest.raises(ApiError, match="410 Expired"):
        read(Server(gone=tuple(range(2, 100))))


def test_the_first_page_of_a_list_is_never_too_old() -> None:
    with pytest.raises(ApiError, match="410 Expired"):
        read(Server(gone=(1,)))


def test_every_page_is_told_with_what_is_to_come() -> None:
    told: list[tuple[int, int | None]] = []
    server = Server()

    list(Listing(server.get, "/api/v1/pods", 3, lambda count, left: told.append((count, left))).objects())

    assert told == [(3, 4), (3, 1), (1, 0)]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"items": {}}', b'{"metadata": {"continue": 3}}'])
def test_an_answer_that_is_no_list_is_an_error(body: bytes) -> None:
    with pytest.raises(UnreachableError, match="not a list from an API server"):
        list(Listing(lambda *_: body, "/api/v1/pods", 2).objects())


def test_no_more_than_a_page_is_held() -> None:
    server = Server()
    found = Listing(server.get, "/api/v1/pods", 2).objects()

    next(found)

    assert len(server.calls) == 1


def test_where_to_go_on_stands_in_the_answer() -> None:
    status = {"kind": "Status", "metadata": {"continue": "next"}, "reason": "Expired", "code": 410}

    assert ApiError.of(status, 410).token == "next"  # noqa: S105 -- of a list
    assert ApiError.of({"reason": "Expired"}, 410).token == ""


def test_a_deep_object_does_not_hide_the_others() -> None:
    deep = b'{"metadata": {"name": "1", "namespace": "a", "managedFields": ' + b"[" * 9_000 + b"]" * 9_000 + b"}}"
    page = b'{"metadata": {}, "items": [' + deep + b', {"metadata": {"name": "2", "namespace": "a"}}]}'

    found = [obj["metadata"]["name"] for obj in Listing(lambda *_: page, "/api/v1/pods", 500).objects()]

    assert found == ["1", "2"]
