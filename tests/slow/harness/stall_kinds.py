"""The ways to stall a connection."""

from __future__ import annotations

import itertools
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.cases import case

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = (
    b"POST /validate?timeout=10s HTTP/1.1\r\nHost: gpugate.gpugate.svc\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n"
)
# Announces the largest allowed body and sends little of it.
_LARGEST = 32 * 1024 * 1024
_PIPELINED = 40


@dataclass(frozen=True, slots=True)
class Kind:
    """The behaviour of an open connection.

    Attributes:
        tls: whether it makes a TLS handshake first.
        first: the bytes to send at once.
        drip: bytes to send repeatedly, one each second.
        reads: whether the client reads responses; otherwise its receive buffer has the smallest size.
    """

    tls: bool = True
    first: bytes = b""
    drip: bytes = b""
    reads: bool = True

    def drops(self) -> Iterator[bytes]:
        return itertools.cycle(bytes([byte]) for byte in self.drip)


def _client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    handshake = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    try:
        handshake.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake with nobody")


def kinds() -> dict[str, Kind]:
    hello, denied = _client_hello(), case("nodepool-create-unlimited.validate", "/validate").body("u")
    return {
        "tcp-only": Kind(tls=False),
        "half-hello": Kind(tls=False, first=hello[: len(hello) // 2]),
        "tls-only": Kind(),
        "half-header": Kind(first=_HEAD[: len(_HEAD) // 2]),
        "half-body": Kind(first=_HEAD % _LARGEST + denied),
        "slow-header": Kind(first=_HEAD[:10], drip=b"x"),
        "slow-body": Kind(first=_HEAD % _LARGEST, drip=b" "),
        "slow-reader": Kind(first=(_HEAD % len(denied) + denied) * _PIPELINED, reads=False),
    }
