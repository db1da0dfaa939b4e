"""One connection without a network: what is sent to it, what it writes, and when it closes."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
import uvicorn
from uvicorn.server import ServerState

from gpugate.certs.serving import SmallRecordsError
from gpugate.webhook.admission.front.connection import CoalescingTransport, Connection
from gpugate.webhook.admission.front.limits import Connections, FrontEvent, Limits, Slot
from gpugate.webhook.admission.front.load import Load

LIMITS = Limits(header=5, body=20, write=50, keep_alive=3600, head=200, url=100, header_line=150, headers=5)
FOREVER = 1e6
GET = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
HEAD = b"POST /validate HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n"
POST = HEAD + b"body"
CHUNKED = HEAD.replace(b"Content-Length: 4", b"Transfer-Encoding: chunked")


class Transport(asyncio.Transport):
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.calls: list[str] = []

    def copy(self) -> Transport:
        copied = Transport()
        copied.written, copied.calls = list(self.written), list(self.calls)
        return copied

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")

    def is_closing(self) -> bool:
        return bool({"close", "abort"} & set(self.calls))

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")

    def get_extra_info(self, name: str, default: object = None) -> object:
        return {"peername": ("10.0.0.1", 1), "sockname": ("10.0.0.9", 8443)}.get(name, default)


class Front:
    """The front of a worker, whose application answers a request when `answer` is called."""

    def __init__(self, *, at_once: bool = True) -> None:
        self.limits = LIMITS
        self.state = ServerState()
        self.load = Load(LIMITS)
        self.client_names: frozenset[str] | None = None
        self.events: Counter[FrontEvent] = Counter()
        self.open: set[Connection] = set()
        self.draining = False
        self.paths: list[str] = []
        # The last message about each body.
        self.last_messages: list[str] = []
        self._answers = asyncio.Semaphore(100 if at_once else 0)
        self.config = uvicorn.Config(
            self._application, http="httptools", ws="none", lifespan="off", interface="asgi3", log_config=None
        )
        self.config.load()
        self.connections = Connections(10, 10)
        slot = self.connections.enter("10.0.0.1", lambda: None)
        assert isinstance(slot, Slot)
        self.slot = slot
        self.transport = Transport()
        self.connection = Connection(self, slot, "https")
        self.connection.connection_made(self.transport)

    def count(self, event: FrontEvent) -> None:
        self.events[event] += 1

    async def _application(self, scope: Any, receive: Any, send: Any) -> None:
        self.paths.append(scope["path"])
        while (message := await receive()).get("more_body"):
            continue
        self.last_messages.append(message["type"])
        await self._answers.acquire()
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.connection.data_received(part)
            await self.pause()

    async def answer(self) -> None:
        self._answers.release()
        await self.pause()

    @staticmethod
    async def pause() -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    def expire(self, seconds: float) -> None:
        self.connection.expire(self.connection.loop.time() + seconds)

    @property
    def codes(self) -> list[int]:
        """The status of each response."""
        return [int(code) for code in re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", b"".join(self.transport.written))]

    @property
    def closes(self) -> list[bool]:
        """Whether each response says that the connection closes."""
        heads = re.split(rb"HTTP/1\.1 [0-9]{3} ", b"".join(self.transport.written))[1:]
        return [b"connection: close" in head.lower() for head in heads]


Scenario: TypeAlias = Callable[[Front], Awaitable[None]]


def play(scenario: Scenario, *, at_once: bool = True) -> Front:
    async def run() -> Front:
        front = Front(at_once=at_once)
        await scenario(front)
        # The end of the loop cancels unanswered requests.
        front.transport = front.transport.copy()
        return front

    return asyncio.run(run())


async def sends_nothing(_: Front) -> None:
    """Only connect."""


def sends(*parts: bytes) -> Scenario:
    return lambda front: front.send(*parts)


async def answered_and_begins_another(front: Front) -> None:
    await front.send(GET, GET[:10])


async def reads_slowly(front: Front) -> None:
    await front.send(GET)
    front.connection.pause_writing()


async def is_refused(front: Front) -> None:
    await front.send(b"GET nowhere HTTP/1.1\r\n\r\n")


DEADLINES: dict[str, tuple[Scenario, float, FrontEvent]] = {
    "no request": (sends_nothing, LIMITS.header, FrontEvent.HEADER_TIMEOUT),
    "a part of a head": (sends(GET[:10]), LIMITS.header, FrontEvent.HEADER_TIMEOUT),
    "a part of the next head": (answered_and_begins_another, LIMITS.header, FrontEvent.HEADER_TIMEOUT),
    "a part of a body": (sends(HEAD, b"bo"), LIMITS.body, FrontEvent.BODY_TIMEOUT),
    "an unread response": (reads_slowly, LIMITS.write, FrontEvent.WRITE_TIMEOUT),
    "an unread error": (is_refused, LIMITS.write, FrontEvent.WRITE_TIMEOUT),
}


@pytest.mark.parametrize(("scenario", "seconds", "event"), DEADLINES.values(), ids=DEADLINES)
def test_each_stage_has_its_deadline(scenario: Scenario, seconds: float, event: FrontEvent) -> None:
    async def run(front: Front) -> None:
        await scenario(front)
        before = front.events.copy(), list(front.transport.calls)
        front.expire(seconds - 1)
        assert (front.events, front.transport.calls) == before
        front.expire(seconds + 1)
        assert front.events[event] == before[0][event] + 1

    front = play(run)
    # Only a late body gets a response.
    assert front.transport.calls[-1] == ("close" if event is FrontEvent.BODY_TIMEOUT else "abort")


@pytest.mark.parametrize(
    "scenario", [scenario for scenario, _, _ in DEADLINES.values()] + [sends(GET)], ids=[*DEADLINES, "idle"]
)
def test_a_connection_gives_way_to_another(scenario: Scenario) -> None:
    async def run(front: Front) -> None:
        await scenario(front)
        assert front.slot.gives_way()

    assert play(run).transport.calls[-1] == "abort"


def test_a_connection_whose_request_is_answered_does_not_give_way() -> None:
    async def run(front: Front) -> None:
        await front.send(GET)
        assert not front.slot.gives_way()
        await front.answer()
        assert front.slot.gives_way()

    assert play(run, at_once=False).codes == [200]


def test_a_client_is_told_that_its_body_is_late() -> None:
    async def run(front: Front) -> None:
        await front.send(HEAD, b"bo")
        front.expire(LIMITS.body + 1)
        await front.send(b"dy")

    front = play(run)
    assert (front.codes, front.closes) == ([408], [True])
    head, _, body = b"".join(front.transport.written).partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[1:] == [
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        b"connection: close",
    ]
    assert json.loads(body)["message"] == "the body did not arrive within 20 s"


def test_an_earlier_request_is_answered_before_a_late_body_behind_it() -> None:
    async def run(front: Front) -> None:
        await front.send(POST, HEAD)
        front.expire(LIMITS.body + 1)
        front.expire(FOREVER)
        assert front.codes == []
        await front.answer()

    front = play(run, at_once=False)
    assert (front.codes, front.closes, front.paths) == ([200, 408], [False, True], ["/validate"])
    assert front.events == Counter({FrontEvent.BODY_TIMEOUT: 1, FrontEvent.BAD_REQUEST: 1})


@pytest.mark.parametrize(("at_once", "idle"), [(False, False), (True, True)], ids=["evaluates", "idle"])
def test_no_deadline_while_the_server_answers_or_the_client_has_no_request(at_once: bool, idle: bool) -> None:  # noqa: FBT001 -- a table's columns
    async def run(front: Front) -> None:
        await front.send(POST)
        front.expire(FOREVER)
        assert front.connection.is_idle is idle
        front.connection.pause_writing()
        front.connection.resume_writing()
        front.expire(FOREVER)

    front = play(run, at_once=at_once)
    assert (front.transport.calls, front.codes) == ([], [200] * at_once)


def test_a_resumed_client_does_not_extend_the_deadline_of_a_body() -> None:
    async def run(front: Front) -> None:
        await front.send(HEAD)
        front.connection.pause_writing()
        front.connection.resume_writing()
        front.expire(LIMITS.write + 1)

    assert play(run).events[FrontEvent.BODY_TIMEOUT] == 1


@pytest.mark.parametrize(
    ("parts", "gone"),
    [((), 0), ((GET[:9],), 0), ((HEAD,), 1), ((POST,), 1), ((POST + POST,), 1)],
    ids=["nothing", "a part of a head", "a head", "a request", "two requests"],
)
def test_a_lost_connection_is_released(parts: tuple[bytes, ...], gone: int) -> None:
    async def run(front: Front) -> None:
        front.load.waiting = 7
        await front.send(*parts)
        assert (front.open, front.connections.open) == ({front.connection}, 1)
        front.transport.abort()
        front.connection.connection_lost(None)
        await front.pause()
        assert (front.open, front.connections.open, front.load.waiting) == (set(), 0, 7)
        front.expire(FOREVER)
        # The application may end later.
        for _ in range(2):
            await front.answer()
        assert front.load.waiting == 7

    front = play(run, at_once=False)
    assert (front.events, front.codes) == (Counter({FrontEvent.CLIENT_GONE: gone} if gone else {}), [])


def test_a_client_that_sends_too_many_small_records_is_counted() -> None:
    async def run(front: Front) -> None:
        await front.send(GET[:10])
        front.connection.connection_lost(SmallRecordsError("too many TLS records with little or no content"))

    assert play(run).events == {FrontEvent.BAD_REQUEST: 1}


def test_queued_work_is_counted_from_the_end_of_a_request_to_its_response() -> None:
    counts = []

    async def run(front: Front) -> None:
        for part in (HEAD, b"body", POST, POST):
            await front.send(part)
            counts.append(front.load.waiting)
        for _ in range(3):
            await front.answer()
            counts.append(front.load.waiting)

    front = play(run, at_once=False)
    assert (counts, front.codes, front.connection.is_idle) == ([0, 1, 2, 3, 2, 1, 0], [200] * 3, True)


def test_the_application_learns_when_a_request_was_complete() -> None:
    async def run(front: Front) -> None:
        front.load.waiting = 1_000_000
        before = front.connection.loop.time()
        await front.send(POST)
        state = front.connection.scope["state"]
        assert before <= state["complete"] <= front.connection.loop.time()
        assert state["full"] is True
        front.load.waiting = 0
        await front.send(POST)
        assert front.connection.scope["state"]["full"] is False
        assert front.connection.scope["scheme"] == "https"

    play(run)


@pytest.mark.parametrize("begins", ["before", "after"])
def test_a_draining_server_closes_after_the_response(begins: str) -> None:
    async def run(front: Front) -> None:
        if begins == "before":
            await front.send(POST, POST)
        front.draining = True
        front.connection.leave_after_answer()
        if begins == "after":
            await front.send(POST)
        await front.answer()
        await front.answer()

    front = play(run, at_once=False)
    # All requests that were received are answered; the last response says that the connection closes.
    assert front.closes == ([False, True] if begins == "before" else [True])
    assert (front.codes, front.transport.is_closing()) == ([200] * len(front.closes), True)


def test_an_idle_connection_stays_open_until_the_next_request() -> None:
    async def run(front: Front) -> None:
        await front.send(GET)
        front.connection.leave_after_answer()

    front = play(run)
    assert (front.closes, front.transport.calls, front.connection.is_idle) == ([False], [], True)


LINE = b"GET /healthz HTTP/1.1\r\n"
REFUSED: dict[str, tuple[tuple[bytes, ...], list[int]]] = {
    "no HTTP": ((b"hello\r\n\r\n",), [400]),
    "no host": ((LINE + b"\r\n",), [400]),
    "a long target": ((b"GET /" + b"x" * 100 + b" HTTP/1.1\r\n\r\n",), [414]),
    "a long target in parts": ((b"GET /" + b"x" * 60, b"x" * 60), [414]),
    "a long header": ((LINE + b"a: " + b"x" * 150 + b"\r\n\r\n",), [431]),
    "many headers": ((LINE + b"a: b\r\n" * 6 + b"\r\n",), [431]),
    "a head without an end": ((LINE, *[b"a: " + b"x" * 10] * 40), [431]),
    "a length above 64 bits": ((HEAD.replace(b" 4", b" 1" + b"0" * 20),), [413]),
    "chunks with long extensions": (
        (
            CHUNKED,
            *[b"1;" + b"x" * 90 + b"\r\na\r\n"] * 5,
        ),
        [400],
    ),
    "a broken body": ((CHUNKED, b"zz\r\n"), [400]),
    "a broken body behind a request": ((POST + CHUNKED, b"zz\r\n"), [200, 400]),
    "a broken body behind two requests": ((POST + POST, CHUNKED, b"zz\r\n"), [200, 200, 400]),
    "behind a request": ((POST + LINE + b"\r\n",), [200, 400]),
    "behind two requests": ((POST + POST, b"hello\r\n\r\n"), [200, 200, 400]),
    "thousands at once": ((GET * 5000,), [200] * (LIMITS.pipelined + 1) + [400]),
    "behind an answered request": ((POST, b"hello\r\n\r\n"), [200, 400]),
}


@pytest.mark.parametrize(("parts", "codes"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("at_once", [True, False], ids=["answered at once", "answered later"])
def test_an_invalid_request_is_refused_after_earlier_responses(
    parts: tuple[bytes, ...],
    codes: list[int],
    at_once: bool,  # noqa: FBT001 -- a table's column
) -> None:
    async def run(front: Front) -> None:
        await front.send(*parts, POST)
        for _ in codes:
            await front.answer()

    front = play(run, at_once=at_once)
    assert (front.codes, front.transport.is_closing(), front.closes[-1]) == (codes, True, True)
    assert front.events == Counter({FrontEvent.BAD_REQUEST: 1})


@pytest.mark.parametrize(
    ("parts", "message"),
    [((CHUNKED, b"zz\r\n"), "http.disconnect"), ((POST,), "http.request")],
    ids=["broken", "whole"],
)
def test_the_application_learns_that_a_body_is_never_complete(parts: tuple[bytes, ...], message: str) -> None:
    assert play(sends(*parts)).last_messages == [message]


@pytest.mark.parametrize(("size", "is_refused"), [(202, False), (203, True)])
def test_a_body_may_have_as_many_other_bytes_as_a_head_and_its_content(size: int, *, is_refused: bool) -> None:
    begin, end = b"1;", b"\r\na\r\n"
    chunk = begin + b"x" * (size - len(begin + end)) + end
    front = play(sends(CHUNKED, chunk, b"0\r\n\r\n"))
    assert (size - 1 > LIMITS.head + 1) is is_refused
    assert front.codes == [400 if is_refused else 200]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_requests_that_wait_are_bounded_however_many_a_client_sends(size: int) -> None:
    async def run(front: Front) -> None:
        for _ in range(200):
            await front.send(GET * size)
            waited.append(len(front.connection.pipeline))
            await front.answer()

    waited: list[int] = []
    front = play(run, at_once=False)
    assert max(waited) <= LIMITS.pipelined
    assert len(front.paths) <= 200


def test_a_client_without_an_allowed_certificate_is_refused() -> None:
    async def run(front: Front) -> None:
        front.connection._client_refusal = None
        front.client_names = frozenset({"kube-apiserver"})
        transport = Transport()
        known: dict[str, object] = {"ssl_object": object(), "peercert": {"subject": ((("commonName", "other"),),)}}
        transport.get_extra_info = lambda name, default=None: known.get(name, default)  # type: ignore[method-assign]
        front.connection.connection_made(transport)
        front.transport = transport
        await front.send(POST)

    front = play(run)
    assert (front.codes, front.events, front.paths) == ([403], Counter({FrontEvent.CLIENT_REFUSED: 1}), [])


def test_an_upgrade_is_ignored_and_the_connection_closes() -> None:
    upgrade = b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n"
    front = play(sends(HEAD.replace(b"\r\n\r\n", b"\r\n" + upgrade) + b"body"))
    assert (front.codes, front.closes, front.paths) == ([200], [True], ["/validate"])


def coalesced(scenario: Callable[[CoalescingTransport], None], inner: Transport | None = None) -> Transport:
    async def run() -> Transport:
        transport = inner or Transport()
        scenario(CoalescingTransport(transport, asyncio.get_running_loop()))
        await asyncio.sleep(0)
        return transport

    return asyncio.run(run())


def writes_and(then: str) -> Callable[[CoalescingTransport], None]:
    def run(transport: CoalescingTransport) -> None:
        transport.write(b"a")
        transport.writelines([b"b", b"c"])
        getattr(transport, then)()

    return run


@pytest.mark.parametrize(
    ("then", "written", "calls"),
    [
        ("is_closing", [b"abc"], []),
        ("close", [b"abc"], ["close"]),
        ("abort", [], ["abort"]),
        ("pause_reading", [b"abc"], ["pause"]),
        ("resume_reading", [b"abc"], ["resume"]),
    ],
)
def test_writes_of_one_iteration_are_joined(then: str, written: list[bytes], calls: list[str]) -> None:
    transport = coalesced(writes_and(then))
    assert (transport.written, transport.calls) == (written, calls)


def test_nothing_is_written_to_a_closing_transport() -> None:
    closing = Transport()
    closing.close()
    assert coalesced(writes_and("is_closing"), closing).written == []


def test_a_transport_shows_the_state_of_the_one_below() -> None:
    seen: list[object] = []

    def look(transport: CoalescingTransport) -> None:
        seen.extend((transport.is_closing(), transport.get_extra_info("peername"), transport.get_extra_info("x", 1)))
        transport.close()
        seen.append(transport.is_closing())

    coalesced(look)
    assert seen == [False, ("10.0.0.1", 1), 1, True]
