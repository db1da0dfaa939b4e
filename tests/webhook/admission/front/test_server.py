from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.admission.front.server import Front, listen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"


def application(_: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]


def served(client: Callable[[Front, int], Awaitable[None]]) -> None:
    """Run a client against a front without TLS and without a gate."""

    async def run() -> None:
        gate: Any = None
        limits = Limits(keep_alive=3600)
        front = Front(lambda load, turns: AdmissionAsgi(gate, application, load, turns, print), limits, print)
        listener = listen("127.0.0.1", 0)
        port = listener.getsockname()[1]
        front.accept_from(listener, None)
        await client(front, port)
        await front.leave(1)

    asyncio.run(run())


async def send_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(REQUEST)
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(2)
    return head.split(b" ")[1]


def test_a_slow_reader_keeps_its_connection_after_reading() -> None:
    codes = []

    async def client(front: Front, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        codes.append(await send_request(reader, writer))
        (connection,) = front.open
        connection.pause_writing()
        connection.resume_writing()
        connection.expire(front.loop.time() + 60)
        codes.append(await send_request(reader, writer))
        writer.close()
        await writer.wait_closed()

    served(client)
    assert codes == [b"200", b"200"]


@pytest.mark.parametrize("waiting", [0, 1_000_000], ids=["idle", "more-work-than-can-be-done"])
def test_probes_are_answered_under_load(waiting: int) -> None:
    codes = []

    async def client(front: Front, port: int) -> None:
        front.load.waiting = waiting
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        codes.append(await send_request(reader, writer))
        writer.close()
        await writer.wait_closed()

    served(client)
    assert codes == [b"200"]
