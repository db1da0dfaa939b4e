from __future__ import annotations

import asyncio
import datetime as dt
import errno
import logging
import os
import socket
import ssl
from collections import Counter
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.front import server
from gpugate.webhook.admission.front.limits import FrontEvent, Limits
from gpugate.webhook.admission.front.server import Front, listen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"


def application(_: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]


def served(client: Callable[[Front, int], Awaitable[None]], app: Any = application) -> None:
    """Run a client against a front without TLS and without a gate."""

    async def run() -> None:
        gate: Any = None
        limits = Limits(keep_alive=3600)
        front = Front(lambda load, turns: AdmissionAsgi(gate, app, load, turns, print), limits, print)
        listener = listen("127.0.0.1", 0)
        port = listener.getsockname()[1]
        front.accept_from(listener, None)
        await client(front, port)
        await front.leave(1)

    asyncio.run(run())


async def send_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes = REQUEST) -> bytes:
    writer.write(request)
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


def test_a_client_cannot_claim_that_it_uses_tls() -> None:
    """Reviews are answered for https only, and the addresses of clients are limited."""
    schemes: list[str] = []

    def asked(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        schemes.append(environ["wsgi.url_scheme"])
        return application(environ, start)

    async def client(_: Front, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        claims = b"X-Forwarded-Proto: https\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
        await send_request(reader, writer, REQUEST.removesuffix(b"\r\n") + claims)
        writer.close()
        await writer.wait_closed()

    served(client, asked)
    assert schemes == ["http"]


def test_requests_are_not_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    # The front changes this logger of uvicorn, also for other tests.
    monkeypatch.setattr(logging.getLogger("uvicorn.access"), "propagate", True)

    async def client(_: Front, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await send_request(reader, writer)
        writer.close()
        await writer.wait_closed()

    with caplog.at_level(logging.INFO):
        served(client)
    assert [record.name for record in caplog.records if record.name == "uvicorn.access"] == []


class Counted:
    """A front without an application, and the events that it counted."""

    def __init__(self, **limits: Any) -> None:
        self.events: Counter[FrontEvent] = Counter()
        self.front = Front(lambda _load, _turns: nothing, Limits(**limits), self.count)

    def count(self, event: FrontEvent) -> None:
        self.events[event] += 1

    @contextmanager
    def listening(self, tls: Callable[[], ssl.SSLContext] | None = None) -> Iterator[Any]:
        listener = listen("127.0.0.1", 0)
        self.front.accept_from(listener, tls)
        yield listener.getsockname()
        self.front.stop_accepting()


async def nothing(_scope: Any, _receive: Any, _send: Any) -> None:
    """Answer nothing."""


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 -- sockets become ready between two iterations
            await asyncio.sleep(0)


def is_local(host: str, family: int) -> bool:
    """Tell whether a machine has an address, without the code under test."""
    try:
        with socket.socket(family) as bound:
            bound.bind((host, 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)], ids=["IPv4", "IPv6"]
)
def test_a_listener_has_the_family_of_its_address(host: str, family: int) -> None:
    if not is_local(host, family):
        pytest.skip("this machine has no such address")
    with listen(host, 0) as listener:
        assert (listener.family, listener.getblocking(), listener.getsockname()[0]) == (family, False, host)
        with pytest.raises(OSError, match="in use"):
            listen(host, listener.getsockname()[1])


def test_little_is_received_before_the_loop_reads_it() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        listener.settimeout(30)
        with listener.accept()[0] as accepted:
            # Linux doubles the value, for what it keeps beside the bytes (socket(7)).
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) <= 2 * 64 * 1024


def test_connections_of_one_address_above_the_limit_are_closed() -> None:
    async def run() -> None:
        counted, opened = Counted(per_source=1), list[asyncio.StreamWriter]()
        with counted.listening(lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)) as address:
            for source in ("127.0.0.1", "127.0.0.2"):
                # Without a handshake, which counts too.
                _, kept = await asyncio.open_connection(*address, local_addr=(source, 0))
                reader, refused = await asyncio.open_connection(*address, local_addr=(source, 0))
                with suppress(ConnectionError):
                    assert await reader.read() == b""
                opened += [kept, refused]
            for writer in opened:
                writer.transport.abort()
        expected = {FrontEvent.ACCEPTED: 2, FrontEvent.REFUSED_SOURCE: 2}
        assert {event: counted.events[event] for event in expected} == expected

    asyncio.run(run())


def test_a_new_connection_above_the_limit_closes_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_HEALTH_CONNECTIONS", 2)

    async def run() -> None:
        counted = Counted()
        with counted.listening() as address:
            (reader, closed), *kept = [await asyncio.open_connection(*address) for _ in range(2)]
            await until(lambda: len(counted.front.open) == 2)
            kept.append(await asyncio.open_connection(*address))
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            await until(lambda: counted.events[FrontEvent.ACCEPTED] == 3)
            assert counted.events == {FrontEvent.ACCEPTED: 3, FrontEvent.REFUSED_TOTAL: 1}
            options = (
                connection.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                for connection in counted.front.open
            )
            assert list(options) == [1, 1]
            # The admission port has a limit of its own.
            assert counted.front.slots.open == 0
            for _, writer in ((reader, closed), *kept):
                writer.close()
            await until(lambda: not counted.front.open)
        await counted.front.leave(0)

    asyncio.run(run())


@pytest.mark.parametrize("sent", [b"", REQUEST[:9]], ids=["nothing", "half-a-head"])
def test_clients_that_hold_every_connection_do_not_stop_probes(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(server, "_HEALTH_CONNECTIONS", 4)
    codes = []

    async def client(_: Front, port: int) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        for _, writer in held:
            writer.write(sent)
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            codes.append(await send_request(reader, writer))
            # A client that keeps its connection holds one more.
            held.append((reader, writer))
        for _, writer in held:
            writer.close()

    served(client)
    assert codes == [b"200"] * 3


def test_handshakes_that_hold_every_connection_give_way() -> None:
    async def run() -> None:
        counted = Counted(connections=2)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with counted.listening(lambda: context) as address:
            writers = [(await asyncio.open_connection(*address))[1] for _ in range(5)]
            await until(lambda: counted.events[FrontEvent.ACCEPTED] == 5)
            assert counted.events == {FrontEvent.ACCEPTED: 5, FrontEvent.REFUSED_TOTAL: 3}
            await until(lambda: len(counted.front._starting) == 2)
            assert counted.front.slots.open == 2
            for writer in writers:
                writer.close()
            await until(lambda: not counted.front.slots.open)

    asyncio.run(run())


def test_a_listener_that_was_closed_accepts_nothing() -> None:
    async def run() -> None:
        counted = Counted()
        with counted.listening() as address:
            pass
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection(*address)

    asyncio.run(run())


def test_without_free_descriptors_accepting_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_PAUSE_SECONDS", 0)

    class Full(socket.socket):
        failures = 1

        def accept(self) -> tuple[socket.socket, Any]:
            if self.failures:
                self.failures -= 1
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    async def run() -> None:
        counted = Counted()
        with listen("127.0.0.1", 0) as listener, Full(fileno=os.dup(listener.fileno())) as full:
            full.setblocking(False)  # noqa: FBT003 -- the signature of socket
            counted.front.accept_from(full, None)
            _, writer = await asyncio.open_connection(*listener.getsockname())
            await until(lambda: counted.front.open)
            assert (full.failures, counted.events) == (0, {FrontEvent.ACCEPTED: 1})
            counted.front.stop_accepting()
            full.failures = 1
            # A listener that was closed meanwhile is not used again.
            counted.front._accept_again(full, None, counted.front.slots)
            writer.close()
            await until(lambda: not counted.front.open)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("sent", "event"),
    [(b"GET / HTTP/1.1\r\n\r\n", FrontEvent.HANDSHAKE_FAILED), (b"", FrontEvent.HANDSHAKE_TIMEOUT)],
    ids=["no TLS", "nothing"],
)
def test_a_failed_handshake_is_counted_and_frees_its_connection(sent: bytes, event: FrontEvent) -> None:
    async def run() -> None:
        counted = Counted(handshake=30 if sent else 0.01)
        with counted.listening(lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)) as address:
            reader, writer = await asyncio.open_connection(*address)
            await until(lambda: counted.front.slots.open)
            writer.write(sent)
            with suppress(ConnectionError):
                await reader.read()
            await until(lambda: counted.events[event])
            assert (counted.front.slots.open, counted.events) == (0, {FrontEvent.ACCEPTED: 1, event: 1})
            writer.close()

    asyncio.run(run())


class Open:
    """A connection that records what the front does with it."""

    def __init__(self, front: Front, *, is_idle: bool = False, ends: bool = True) -> None:
        self.front, self.is_idle, self.ends = front, is_idle, ends
        self.calls: list[str] = []
        front.open.add(cast("Any", self))

    def expire(self, now: float) -> None:
        self.calls.append("expire" if now <= self.front.loop.time() else "early")

    def leave_after_answer(self) -> None:
        self.calls.append("leave after answer")

    def end(self) -> None:
        self.calls.append("end")
        if self.ends:
            self.front.open.discard(cast("Any", self))


def test_deadlines_are_checked_and_the_date_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SWEEP_SECONDS", 0)

    async def run() -> None:
        front = Counted().front
        connection = Open(front)
        keeping = asyncio.create_task(front.keep_time())
        await until(lambda: len(connection.calls) > 1)
        keeping.cancel()
        ((name, value),) = front.state.default_headers
        date = parsedate_to_datetime(value.decode())
        assert (name, value[-3:], abs((dt.datetime.now(dt.UTC) - date).total_seconds()) < 60) == (b"date", b"GMT", True)
        assert set(connection.calls) == {"expire"}

    asyncio.run(run())


def test_a_front_that_leaves_ends_idle_connections_at_once_and_others_at_the_limit() -> None:
    async def run() -> None:
        front = Counted().front
        idle, busy = Open(front, is_idle=True), Open(front)
        leaving = asyncio.create_task(front.leave(30))
        await until(lambda: "end" in idle.calls)
        assert (front.draining, busy.calls, leaving.done()) == (True, ["leave after answer"], False)
        busy.end()
        await leaving
        late = Open(front, ends=False)
        await front.leave(0)
        assert (idle.calls, late.calls) == (["leave after answer", "end"],) * 2

    asyncio.run(run())
