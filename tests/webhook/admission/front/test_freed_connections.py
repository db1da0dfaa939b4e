"""Reference counts alone free a connection, however it ends, without a garbage collection."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import ssl
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

from gpugate.certs.pki import certificate_authority, server_certificate
from gpugate.certs.serving import server_context
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.front.connection import Connection
from gpugate.webhook.admission.front.limits import FrontEvent, Limits
from gpugate.webhook.admission.front.server import Front, listen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

NOW = dt.datetime.now(tz=dt.UTC)
DAY = dt.timedelta(days=1)
AUTHORITY = certificate_authority("ca", now=NOW, lifetime=DAY)
PAIR = server_certificate(AUTHORITY, ["localhost"], now=NOW, lifetime=DAY)
GET = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST /validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"

# What a client sends before it closes, and the first event after the connection was accepted.
WITHOUT_TLS = [
    pytest.param(b"", FrontEvent.HANDSHAKE_FAILED, id="nothing"),
    pytest.param(GET, FrontEvent.HANDSHAKE_FAILED, id="no-tls"),
    # A ClientHello of one byte.
    pytest.param(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01x", FrontEvent.HANDSHAKE_FAILED, id="invalid-hello"),
    pytest.param(b"\x16\x03\x01\x00\x05\x01\x00\x00\x09x", FrontEvent.HANDSHAKE_FAILED, id="half-hello"),
    pytest.param(None, FrontEvent.HANDSHAKE_TIMEOUT, id="no-handshake-in-time"),
]
WITH_TLS = [
    pytest.param(b"", id="nothing"),
    pytest.param(POST[:20], id="half-a-head"),
    pytest.param(b"GET\r\n\r\n", id="invalid-head"),
    pytest.param(POST + b"{", id="half-a-body"),
    pytest.param(GET, id="request"),
    pytest.param(GET * 9, id="requests-before-responses"),
    pytest.param(GET * 40, id="more-requests-than-may-wait"),
    pytest.param(GET * 9 + b"GET\r\n\r\n", id="invalid-head-after-requests"),
    pytest.param(GET * 9 + POST + b"{", id="half-a-body-after-requests"),
]


def application(_: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]


class Served:
    """A front and its events."""

    def __init__(self, limits: Limits) -> None:
        self.events: Counter[FrontEvent] = Counter()
        gate: Any = None
        self.front = Front(lambda load, turns: AdmissionAsgi(gate, application, load, turns, print), limits, self.count)
        listener = listen("127.0.0.1", 0)
        self.port = listener.getsockname()[1]
        context = server_context(PAIR)
        self.front.accept_from(listener, lambda: context)

    def count(self, event: FrontEvent) -> None:
        self.events[event] += 1

    async def ended(self, event: FrontEvent) -> None:
        """Wait until the event was counted and every connection has ended."""
        async with asyncio.timeout(30):
            while not self.events[event] or self.front.slots.open or self.front.open:  # noqa: ASYNC110 -- there is no event
                await asyncio.sleep(0.01)
        await self.front.leave(1)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


@pytest.fixture
def runner(uncollected: None) -> Iterator[asyncio.Runner]:  # noqa: ARG001 -- its effect
    """Return a runner with the event loop of the workers. That of asyncio keeps failed handshakes itself."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as running:
        yield running


def remaining() -> int:
    """Return how many connections of servers exist, with the TLS below them."""
    objects = gc.get_objects()
    return sum(
        isinstance(each, Connection) or (isinstance(each, ssl.SSLObject) and each.server_side) for each in objects
    )


@pytest.mark.parametrize(("sent", "event"), WITHOUT_TLS)
def test_a_failed_handshake_keeps_nothing(runner: asyncio.Runner, sent: bytes | None, event: FrontEvent) -> None:
    async def run() -> None:
        served = Served(Limits(handshake=30 if sent is not None else 0.01))
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        if sent is None:
            await reader.read()
        else:
            writer.write(sent)
        await close(writer)
        await served.ended(event)

    runner.run(run())
    assert remaining() == 0


def test_a_client_that_does_not_trust_the_certificate_leaves_nothing(runner: asyncio.Runner) -> None:
    async def run() -> None:
        served = Served(Limits())
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection("127.0.0.1", served.port, ssl=ssl.create_default_context())
        await served.ended(FrontEvent.HANDSHAKE_FAILED)

    runner.run(run())
    assert remaining() == 0


@pytest.mark.parametrize("sent", WITH_TLS)
def test_a_connection_keeps_nothing(runner: asyncio.Runner, sent: bytes) -> None:
    async def run() -> None:
        served = Served(Limits())
        trust = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
        _, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=trust, server_hostname="localhost")
        writer.write(sent)
        await writer.drain()
        await close(writer)
        await served.ended(FrontEvent.ACCEPTED)

    runner.run(run())
    assert remaining() == 0
