"""Clients that do not speak TLS as the API server does."""

from __future__ import annotations

import json
import ssl
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import socket

TLS_1_0, TLS_1_1, TLS_1_2 = b"\x03\x01", b"\x03\x02", b"\x03\x03"
RSA_WITH_AES_128_CBC_SHA, RSA_WITH_NULL_MD5 = b"\x00\x2f", b"\x00\x01"
# RFC 8446 section 6: the type of a record, and descriptions of fatal alerts.
ALERT, FATAL = 21, 2
HANDSHAKE_FAILURE, PROTOCOL_VERSION = 40, 70


def client_hello(version: bytes, cipher: bytes) -> bytes:
    """Write a ClientHello without extensions (RFC 5246 section 7.4.1.2)."""
    hello = version + bytes(32) + b"\x00" + b"\x00\x02" + cipher + b"\x01\x00"
    handshake = b"\x01" + len(hello).to_bytes(3) + hello
    return b"\x16\x03\x01" + len(handshake).to_bytes(2) + handshake


def received(sock: socket.socket) -> bytes:
    parts = []
    try:
        while part := sock.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


NO_TLS = {
    "get": b"GET /validate HTTP/1.1\r\nHost: gpugate\r\n\r\n",
    "post": b"POST /validate HTTP/1.1\r\nHost: gpugate\r\nContent-Length: 2\r\n\r\n{}",
    "h2c": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "binary-garbage": bytes(range(256)) * 100,
    "ssh": b"SSH-2.0-OpenSSH_9.9\r\n",
}
OLD_TLS = {
    "tls-1.0": (client_hello(TLS_1_0, RSA_WITH_AES_128_CBC_SHA), {PROTOCOL_VERSION}),
    "tls-1.1": (client_hello(TLS_1_1, RSA_WITH_AES_128_CBC_SHA), {PROTOCOL_VERSION}),
    "no-common-cipher": (client_hello(TLS_1_2, RSA_WITH_NULL_MD5), {HANDSHAKE_FAILURE}),
}


@pytest.fixture(scope="module")
def answers(wire: Any) -> dict[str, bytes]:
    """Send each on a connection, and return what comes until the server closes it, which takes it seconds."""
    sent = NO_TLS | {name: hello for name, (hello, _) in OLD_TLS.items()}
    with ExitStack() as stack:
        sockets = {name: stack.enter_context(wire.tcp()) for name in sent}
        for name, sock in sockets.items():
            sock.sendall(sent[name])
        return {name: received(sock) for name, sock in sockets.items()}


@pytest.mark.parametrize("name", NO_TLS)
def test_no_tls_is_not_answered(answers: dict[str, bytes], name: str) -> None:
    answer = answers[name]
    # An alert at most.
    assert (b"HTTP/1.1 200" in answer, b"<html" in answer.lower(), len(answer) < 100) == (False, False, True)


@pytest.mark.parametrize("name", OLD_TLS)
def test_old_tls_gets_an_alert_or_nothing(answers: dict[str, bytes], name: str) -> None:
    answer, (_, alerts) = answers[name], OLD_TLS[name]
    # OpenSSL makes an alert, which asyncio and uvloop do not always send before they close.
    assert answer == b"" or ((answer[0], answer[5]) == (ALERT, FATAL) and answer[6] in alerts)


def certificate(wire: Any, server_name: str | None) -> tuple[bytes | None, bool]:
    """Return the certificate served for a name, and whether a review is allowed over it."""
    trust = ssl.create_default_context(cafile=None, cadata=None)
    trust.check_hostname = False
    trust.verify_mode = ssl.CERT_NONE
    with wire.tcp() as sock, trust.wrap_socket(sock, server_hostname=server_name) as wrapped:
        wrapped.sendall(wire.post(b"Connection: close"))
        answer = received(wrapped)
        return wrapped.getpeercert(binary_form=True), json.loads(answer.partition(b"\r\n\r\n")[2])["response"][
            "allowed"
        ]


@pytest.mark.parametrize(
    "server_name",
    [pytest.param(None, id="no-name"), pytest.param("other.example", id="name-of-another-host")],
)
def test_any_server_name_gets_the_same_certificate(wire: Any, server_name: str | None) -> None:
    assert certificate(wire, server_name) == (certificate(wire, "localhost")[0], True)


def test_http_2_is_not_agreed_on(wire: Any) -> None:
    trust = ssl.create_default_context()
    trust.check_hostname = False
    trust.verify_mode = ssl.CERT_NONE
    trust.set_alpn_protocols(["h2", "http/1.1"])
    with wire.tcp() as sock, trust.wrap_socket(sock) as wrapped:
        assert wrapped.selected_alpn_protocol() in {None, "http/1.1"}
