"""Clients that send bodies slowly: which other clients are answered meanwhile, and which should retry."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import uvloop
from handshakes import trusting

from gpugate.certs.pki import certificate_authority, server_certificate
from gpugate.certs.serving import server_context
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.admission.front.server import Front, listen
from gpugate.webhook.admission.gate import Gate, Rules

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

NOW = dt.datetime.now(tz=dt.UTC)
DAY = dt.timedelta(days=1)
AUTHORITY = certificate_authority("ca", now=NOW, lifetime=DAY)
PAIR = server_certificate(AUTHORITY, ["localhost"], now=NOW, lifetime=DAY)
KIB = 1024
IN_FLIGHT = 256 * KIB
ATTACKER, API_SERVER = "127.0.0.2", "127.0.0.1"
REVIEW = (
    b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"DELETE",'
    b'"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},'
    b'"oldObject":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}}}'
)
Streams: TypeAlias = "tuple[asyncio.StreamReader, asyncio.StreamWriter]"


class Server:
    def __init__(self, front: Front, port: int) -> None:
        self.front = front
        self._port = port
        self._opened: list[asyncio.StreamWriter] = []

    async def connect(self, source: str) -> Streams:
        trust = trusting(AUTHORITY.certificate, None)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=trust, server_hostname="localhost", local_addr=(source, 0)
        )
        self._opened.append(writer)
        return reader, writer

    def close(self) -> None:
        for writer in self._opened:
            writer.transport.abort()

    async def hold(self, source: str, size: int) -> Streams:
        """Send a body without its last byte, and wait until it is counted."""
        reader, writer = await self.connect(source)
        before = self.front.load.bodies.bytes
        writer.write(head(size + 1) + b" " * size)
        async with asyncio.timeout(30):
            while self.front.load.bodies.bytes < before + size:  # noqa: ASYNC110 -- there is no event for it
                await asyncio.sleep(0.001)
        return reader, writer


@pytest.fixture
def served() -> Callable[[Callable[[Server], Awaitable[None]]], None]:
    """Run a client against a front with a limit of 256 KiB, which evicts unfinished bodies only after an hour."""

    def run(client: Callable[[Server], Awaitable[None]]) -> None:
        async def serve() -> None:
            gate = Gate(Rules(bind((), PolicyConfig()), "g"), NoFacts(), lambda: NOW)
            wsgi: Any = None
            front = Front(
                lambda load, turns: AdmissionAsgi(gate, wsgi, load, turns, lambda _: None),
                Limits(in_flight=IN_FLIGHT, body_grace=3600),
                lambda _: None,
            )
            listener = listen("127.0.0.1", 0)
            port = listener.getsockname()[1]
            context = server_context(PAIR)
            front.accept_from(listener, lambda: context)
            server = Server(front, port)
            try:
                await client(server)
            finally:
                server.close()
            await front.leave(0)

        uvloop.run(serve())

    return run


def head(size: int) -> bytes:
    return b"POST /validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % size


async def send_review(streams: Streams, size: int = len(REVIEW)) -> tuple[int, dict[str, str]]:
    """Send a review of `size` bytes; return the status and the headers of the response."""
    reader, writer = streams
    writer.write(head(size) + REVIEW.ljust(size))
    return await answered(reader)


async def answered(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
    headers = {name.lower(): value for name, value in (each.split(": ", 1) for each in lines)}
    await reader.readexactly(int(headers["content-length"]))
    return int(line.split()[1]), headers


@pytest.mark.parametrize(("size", "status"), [(64 * KIB, 200), (64 * KIB + 1, 429)])
def test_bodies_up_to_64_kib_are_not_counted(served: Any, size: int, status: int) -> None:
    async def client(server: Server) -> None:
        await server.hold(ATTACKER, IN_FLIGHT)
        found, _ = await send_review(await server.connect(ATTACKER), size)
        assert found == status

    served(client)


def test_a_client_retries_on_the_same_connection(served: Any) -> None:
    async def client(server: Server) -> None:
        _, waiting = await server.hold(ATTACKER, IN_FLIGHT)
        streams = await server.connect(ATTACKER)
        status, headers = await send_review(streams, 65 * KIB)
        assert (status, headers["retry-after"], "connection" in headers) == (429, "1", False)
        waiting.write(b" ")
        async with asyncio.timeout(30):
            while server.front.load.bodies.bytes:  # noqa: ASYNC110 -- there is no event for it
                await asyncio.sleep(0.001)
        status, _ = await send_review(streams, 65 * KIB)
        assert status == 200

    served(client)


def test_another_source_is_answered_at_once(served: Any) -> None:
    async def client(server: Server) -> None:
        for _ in range(2):
            await server.hold(ATTACKER, IN_FLIGHT // 2)
        status, _ = await send_review(await server.connect(API_SERVER), IN_FLIGHT // 2)
        assert status == 200

    served(client)


def test_the_client_of_an_evicted_body_should_retry(served: Any) -> None:
    async def client(server: Server) -> None:
        reader, writer = await server.hold(ATTACKER, IN_FLIGHT)
        await send_review(await server.connect(API_SERVER), IN_FLIGHT)
        writer.write(b" ")
        status, headers = await answered(reader)
        assert (status, headers["retry-after"], server.front.load.bodies.bytes) == (429, "1", 0)

    served(client)


@pytest.mark.parametrize(
    "request_head",
    [
        pytest.param(head(IN_FLIGHT).replace(b"/json", b"/yaml"), id="another-media-type"),
        pytest.param(head(IN_FLIGHT).replace(b"/validate", b"/%76alidate"), id="another-path"),
    ],
)
def test_other_requests_are_answered_without_their_body(served: Any, request_head: bytes) -> None:
    async def client(server: Server) -> None:
        reader, writer = await server.connect(ATTACKER)
        writer.write(request_head + b" " * 100 * KIB)
        status, headers = await answered(reader)
        assert (status in {404, 415}, headers["connection"], server.front.load.bodies.bytes) == (True, "close", 0)

    served(client)
