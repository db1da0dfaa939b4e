"""Other versions of HTTP, expectations, and many requests on one connection."""

from __future__ import annotations

import json
import socket
import struct
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


def test_http_1_0_is_answered_and_closed(wire: Any) -> None:
    (answer,) = wire.to_the_end(wire.post().replace(b"HTTP/1.1", b"HTTP/1.0", 1))
    assert (answer.status, answer.response["allowed"]) == (200, True)


def test_http_0_9(wire: Any) -> None:
    assert [answer.status for answer in wire.to_the_end(b"GET /validate\r\n\r\n")] in ([], [400])


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(b"HTTP/9.9", id="http-9.9"),
        pytest.param(b"HTTP/2.0", id="http-2.0"),
        pytest.param(b"HTTP/1.2", id="http-1.2"),
        pytest.param(b"HTTP/1", id="half-a-version"),
        pytest.param(b"HTTP/11.1", id="two-digits"),
        pytest.param(b"http/1.1", id="lower-case"),
        pytest.param(b"ICE/1.0", id="another-protocol"),
    ],
)
def test_other_versions(wire: Any, version: bytes) -> None:
    wire.refused(400, "HTTP/1.1", wire.post().replace(b"HTTP/1.1", version, 1))


def test_preface_of_http_2(wire: Any) -> None:
    wire.refused(400, "HTTP/1.1", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMA"], id="h2c"),
        pytest.param([b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13"], id="websocket"),
        pytest.param([b"Upgrade: h2c"], id="upgrade-without-connection"),
    ],
)
def test_upgrades_are_ignored(wire: Any, headers: list[bytes]) -> None:
    wire.allowed(wire.post(*headers))


def test_continue_is_said_before_the_body_comes(wire: Any) -> None:
    head, _, body = wire.post(b"Expect: 100-continue").partition(b"\r\n\r\n")
    with wire.tls() as sock, sock.makefile("rb") as stream:
        sock.sendall(head + b"\r\n\r\n")
        assert (stream.readline(), stream.readline()) == (b"HTTP/1.1 100 Continue\r\n", b"\r\n")
        sock.sendall(body)
        assert stream.readline() == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("value", [b"ok", b"continue, x"], ids=["another", "two"])
def test_other_expectations(wire: Any, value: bytes) -> None:
    wire.refused(417, "100-continue", wire.post(b"Expect: " + value))


def uids(answers: list[Any]) -> list[str]:
    return [answer.response["uid"] for answer in answers]


@pytest.mark.parametrize("apart", [True, False], ids=["in-two-pieces", "in-one-piece"])
def test_pipelined_requests_are_answered_in_order(wire: Any, captured: Callable[[str], bytes], apart: bool) -> None:  # noqa: FBT001 -- a column
    names = ["pod-delete.validate", "pod-create-training.validate", "nodepool-create.validate"]
    bodies = [captured(name) for name in names]
    requests = [wire.post(body=body) for body in bodies]
    answers = wire.asked(*(requests if apart else [b"".join(requests)]), answers=len(names))
    assert uids(answers) == [json.loads(body)["request"]["uid"] for body in bodies]


def test_bad_request_behind_a_good_one(wire: Any) -> None:
    good, bad = wire.to_the_end(wire.post() + b"\x00\x00\x00\r\n\r\n")
    assert (good.status, bad.status) == (200, 400)


def test_a_thousand_requests_on_one_connection(wire: Any) -> None:
    with wire.tls() as sock, sock.makefile("rb") as stream:
        for _ in range(1000):
            sock.sendall(wire.post())
            assert wire.read(stream).status == 200


@pytest.mark.parametrize("requests", [1, 50], ids=["one-request", "pipelined"])
def test_client_that_resets_while_it_is_answered(wire: Any, log: Any, requests: int) -> None:
    log.new()
    for _ in range(20):
        with wire.tls() as sock:
            sock.sendall(wire.post() * requests)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.allowed(wire.post())
    assert log.new() == ""
