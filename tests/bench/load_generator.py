"""Sends reviews to a server over TLS and takes the time, cheaply enough to run beside it on the same cores.

The bytes of a request are made once; an answer is looked at only as far as its end must be found: the status (200, or 201
of the API server) and Content-Length or the last chunk. One answer in a hundred is kept for the caller to read in full.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

import uvloop

if TYPE_CHECKING:
    from pathlib import Path

_SUCCEEDED: Final = (b"HTTP/1.1 200 ", b"HTTP/1.1 201 ")
_LENGTH: Final = b"content-length:"
_CHUNKED: Final = b"transfer-encoding: chunked"
_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"
_SAMPLED: Final = 100
# A server that hangs must not hang the measurement.
_PATIENCE_SECONDS: Final = 120


class LoadError(Exception):
    """The server answered with another status than 200 or 201, closed the connection, or did not answer at all."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server: its address, the file of the authority that signed its certificate, and the files of a client certificate.

    A server without `client` asks for no certificate.
    """

    url: str
    ca_file: Path
    client: tuple[Path, Path] | None = None

    def request(self, path: str, body: bytes) -> bytes:
        """Return the bytes of a POST as the API server sends it; `path` may have a query."""
        separator = "&" if "?" in path else "?"
        head = (
            f"POST {path}{separator}timeout=10s HTTP/1.1\r\nHost: {urlsplit(self.url).netloc}\r\nUser-Agent: kube-apiserver-admission\r\n"
            f"Content-Length: {len(body)}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
            "Accept-Encoding: gzip\r\n\r\n"
        )
        return head.encode("ascii") + body


@dataclass(slots=True)
class Load:
    """What was sent and how long each answer took, in seconds; `answers` are the bodies that were kept."""

    latencies: list[float] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.latencies) / self.seconds

    def latency(self, share: float) -> float:
        """Seconds that this share of the answers did not exceed."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def keep_alive(target: Target, request: bytes, *, connections: int, requests: int) -> Load:
    """Send so many requests in all over connections that stay open, each sending when its last answer has come.

    Raises:
        LoadError: an answer is neither 200 nor 201, or does not come.
    """
    return uvloop.run(_keep_alive(target, request, connections, requests))


def fresh_connections(target: Target, request: bytes, connections: int) -> Load:
    """Send one request over each of so many connections, one after the other, every one with a full handshake.

    Raises:
        LoadError: as for `keep_alive`.
    """
    return uvloop.run(_fresh(target, request, connections))


def length_of(answer: bytes) -> int:
    """Return how many bytes the answer has in all; 0 when that is not known yet, -1 when its status or its head is unusable."""
    head = answer.find(b"\r\n\r\n")
    if head < 0:
        return 0
    fields = answer[:head].lower()
    length = fields.find(_LENGTH)
    if not answer.startswith(_SUCCEEDED):
        return -1
    if length < 0 and _CHUNKED in fields:
        return len(answer) if answer.endswith(_LAST_CHUNK) else 0
    if length < 0:
        return -1
    return head + 4 + int(answer[length + len(_LENGTH) : head].split(b"\r\n", 1)[0])


async def _keep_alive(target: Target, request: bytes, connections: int, requests: int) -> Load:
    load = Load()
    shares = [requests // connections + (number < requests % connections) for number in range(connections)]
    trust = trust_of(target)
    opened = [await _connect(target, trust, request, load, share) for share in shares]
    started = time.perf_counter()
    for connection in opened:
        connection.send()
    await _wait(opened)
    load.seconds = time.perf_counter() - started
    return load


async def _fresh(target: Target, request: bytes, connections: int) -> Load:
    load = Load()
    trust = trust_of(target)
    started = time.perf_counter()
    for _ in range(connections):
        connection = await _connect(target, trust, request, load, 1)
        connection.send()
        await _wait([connection])
    load.seconds = time.perf_counter() - started
    return load


def trust_of(target: Target) -> ssl.SSLContext:
    """Return the context of a client that trusts the authority of a target, and presents its client certificate."""
    trust = ssl.create_default_context(cafile=target.ca_file)
    if target.client is not None:
        trust.load_cert_chain(*target.client)
    return trust


async def _connect(target: Target, trust: ssl.SSLContext, request: bytes, load: Load, requests: int) -> _Connection:
    loop = asyncio.get_running_loop()
    address = urlsplit(target.url)
    _, connection = await loop.create_connection(
        lambda: _Connection(request, load, requests), address.hostname or "", address.port or 443, ssl=trust
    )
    return connection


async def _wait(connections: list[_Connection]) -> None:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await asyncio.gather(*(connection.done for connection in connections))
    except TimeoutError:
        raise LoadError(f"the server did not answer in {_PATIENCE_SECONDS} s") from None
    finally:
        for connection in connections:
            connection.close()


class _Connection(asyncio.Protocol):
    """Sends the request again when its answer is complete, until it has been sent often enough."""

    def __init__(self, request: bytes, load: Load, requests: int) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._load = load
        self._left = requests
        self._answer = b""
        self._end = 0
        self._sent = 0.0
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def send(self) -> None:
        """Send the request, or be done."""
        if self._left == 0 or self._transport is None:
            self.done.set_result(None)
            return
        self._left -= 1
        self._answer, self._end = b"", 0
        self._sent = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._answer = self._answer + data if self._answer else data
        if not self._end:
            self._end = length_of(self._answer)
        if self._end < 0:
            head, _, body = self._answer.partition(b"\r\n\r\n")
            self._fail(f"answered {head[:60]!r}: {body[:300]!r}")
        elif 0 < self._end <= len(self._answer):
            self._load.latencies.append(time.perf_counter() - self._sent)
            if len(self._load.latencies) % _SAMPLED == 1:
                self._load.answers.append(self._answer.partition(b"\r\n\r\n")[2])
            self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"closed the connection ({exc})")

    def close(self) -> None:
        """Close without waiting for the other side."""
        self.done.cancel()
        if self._transport is not None:
            self._transport.close()

    def _fail(self, what: str) -> None:
        if not self.done.done():
            self.done.set_exception(LoadError(f"the server {what}"))
