"""TLS handshakes with a server on loopback."""

from __future__ import annotations

import datetime as dt
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from gpugate.certs.pki import certificate_authority, server_certificate
from gpugate.certs.serving import server_context
from gpugate.webhook.operate.doctor_case import Target, make_handshake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.certs.pki import KeyPair

DAY = dt.timedelta(days=1)
NOW = dt.datetime.now(dt.UTC)
OURS = certificate_authority("ours", now=NOW, lifetime=DAY)
OTHER = certificate_authority("other", now=NOW, lifetime=DAY)
EXPIRED = certificate_authority("expired", now=NOW - 2 * DAY, lifetime=DAY)


@contextmanager
def listening(pair: KeyPair | None) -> Iterator[int]:
    """Answer TLS handshakes with a certificate, or send other data without one."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                if pair is None:
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                else:
                    with server_context(pair).wrap_socket(connection, server_side=True) as secured:
                        secured.recv(1)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


def pair(authority: KeyPair, name: str) -> KeyPair:
    return server_certificate(authority, [name], now=NOW, lifetime=DAY)


@pytest.mark.parametrize(
    ("shown", "bundle", "says"),
    [
        (pair(OURS, "gpugate.gpugate.svc"), OURS.certificate, ""),
        (pair(OURS, "gpugate.gpugate.svc"), OTHER.certificate + OURS.certificate, ""),
        (pair(OURS, "gpugate.other.svc"), OURS.certificate, "Hostname mismatch"),
        (pair(OURS, "gpugate.gpugate.svc"), OTHER.certificate, "unable to get local issuer certificate"),
        (pair(OURS, "gpugate.gpugate.svc"), b"", "the caBundle contains no certificate"),
        (
            server_certificate(EXPIRED, ["gpugate.gpugate.svc"], now=NOW - 2 * DAY, lifetime=DAY),
            EXPIRED.certificate,
            "expired",
        ),
        (None, OURS.certificate, "no TLS"),
    ],
    ids=["trusted", "one of two", "another name", "another authority", "no authority", "expired", "no TLS"],
)
def test_a_certificate_is_checked_as_an_api_server_does(shown: KeyPair | None, bundle: bytes, says: str) -> None:
    with listening(shown) as port:
        found = make_handshake(Target("gpugate.gpugate.svc", "127.0.0.1", port, bundle))

    assert (bool(found.refused), says in found.refused, found.unreached) == (bool(says), True, "")


def test_a_refused_certificate_is_returned() -> None:
    shown = pair(OURS, "gpugate.other.svc")

    with listening(shown) as port:
        found = make_handshake(Target("gpugate.gpugate.svc", "127.0.0.1", port, OURS.certificate))

    assert found.certificate == shown.certificate


def test_an_unreachable_address_is_not_a_refused_certificate() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    found = make_handshake(Target("gpugate.gpugate.svc", "127.0.0.1", port, OURS.certificate))

    assert (found.refused, found.unreached) == ("", "connection refused")
