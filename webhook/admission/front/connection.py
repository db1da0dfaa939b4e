"""One connection: uvicorn's HTTP/1.1 protocol with deadlines, strict heads and errors that say what is wrong."""

from __future__ import annotations

import math
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gpugate.webhook.admission.front.clients import stranger
from gpugate.webhook.admission.front.coalescing import CoalescingTransport
from gpugate.webhook.admission.front.events import FrontEvent
from gpugate.webhook.admission.front.request_head import HeadSize, Refusal, refused
from gpugate.webhook.admission.response import status

if TYPE_CHECKING:
    import asyncio

    from gpugate.webhook.admission.front.connections import Place
    from gpugate.webhook.admission.front.server import Front


class _Stage(Enum):
    IDLE = "waits for a request"
    HEAD = "reads a head"
    BODY = "reads a body"
    ANSWER = "answers"
    CLOSING = "has been told to go"


_TIMEOUTS = {
    _Stage.HEAD: FrontEvent.HEADER_TIMEOUT,
    _Stage.BODY: FrontEvent.BODY_TIMEOUT,
    _Stage.CLOSING: FrontEvent.WRITE_TIMEOUT,
}


# What the parser says of a Content-Length that no number of ours can hold.
_OVERFLOW = "Content-Length overflow"


class Connection(HttpToolsProtocol):
    """A connection of the front.

    Deadlines are checked by the front once in a while (`expire`): a timer for each request would cost more than all
    the rest of this.
    """

    def __init__(self, front: Front, place: Place) -> None:
        super().__init__(front.config, front.state, {})
        self._front = front
        self._place = place
        self._stage = _Stage.HEAD
        self._deadline = math.inf
        self._waiting = 0
        self._in_head = False
        # Bytes that came since the stage of this request was what it is, and those of them that belong to its body.
        self._fed = 0
        self._body = 0
        self._head = HeadSize(front.limits)
        self._refusal: Refusal | None = None
        self._done = False
        self._stranger: Refusal | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock: a client that connects has something to say."""
        self._stranger = stranger(transport, self._front.client_names)
        super().connection_made(CoalescingTransport(cast("asyncio.Transport", transport), self.loop))
        self._wait(_Stage.HEAD, self._front.limits.header)
        self._front.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what the connection held."""
        self._place.release()
        self._front.open.discard(self)
        self._front.load.waiting -= self._waiting
        if self._stage in {_Stage.BODY, _Stage.ANSWER}:
            self._front.count(FrontEvent.CLIENT_GONE)
        self._waiting, self._stage, self._deadline, self._done = 0, _Stage.CLOSING, math.inf, True
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came; after an error, and while closing, it is dropped."""
        if self._done:
            return
        self._unset_keepalive_if_required()
        if self._stage is _Stage.IDLE:
            self._wait(_Stage.HEAD, self._front.limits.header)
        before = self._stage, self.cycle
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(self._refusal or _misread(str(error)))
        else:
            self._fed = self._fed + len(data) if (self._stage, self.cycle) == before else 0
            self._bound_what_is_no_body()

    def on_message_begin(self) -> None:
        """Forget the head of the last request."""
        super().on_message_begin()
        self._in_head = True
        self._head = HeadSize(self._front.limits)

    def on_url(self, url: bytes) -> None:
        """Keep the target, within bounds."""
        super().on_url(url)
        self._demand(self._head.url(len(self.url)))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, within bounds."""
        self._demand(self._head.header(name, value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check the head, and start to answer."""
        method, version = self.parser.get_method(), self.parser.get_http_version()
        self._demand(self._stranger or refused(method, version, self.url, self.headers))
        if self.parser.should_upgrade():
            return
        super().on_headers_complete()
        self._in_head, self._body = False, 0
        if self._front.draining:
            self.cycle.keep_alive = False
        self._wait(_Stage.BODY, self._front.limits.body)

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note when the request was there, and whether there is room for it."""
        if self.parser.should_upgrade() or self.cycle.response_complete:
            return
        self._waiting += 1
        self._front.load.waiting += 1
        state = cast("dict[str, object]", self.cycle.scope["state"])
        state["complete"] = self.loop.time()
        state["full"] = self._front.load.is_full
        super().on_message_complete()
        self._stage, self._deadline = _Stage.ANSWER, math.inf

    def on_response_complete(self) -> None:
        """Wait for the next request, or end the connection."""
        if self._waiting:
            self._waiting -= 1
            self._front.load.waiting -= 1
        more = bool(self.pipeline)
        super().on_response_complete()
        if self._refusal is not None and not more:
            self._refuse(self._refusal)
        elif self.transport.is_closing() or (self._done and not more):
            self.end()
        elif self._in_head:
            self._wait(_Stage.HEAD, self._front.limits.header)
        elif self._stage is _Stage.ANSWER and not self._waiting:
            self._stage = _Stage.IDLE

    def pause_writing(self) -> None:
        """Give a client that does not read its answer some time."""
        super().pause_writing()
        self._deadline = self.loop.time() + self._front.limits.write

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        super().resume_writing()
        # The end of a long answer is taken when the next request is already waited for.
        if self._stage in {_Stage.ANSWER, _Stage.IDLE}:
            self._deadline = math.inf

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self._stage is _Stage.IDLE

    def leave_after_answer(self) -> None:
        """Let the answer to the last request that came, if one is due, be the last on this connection."""
        # A request that waits behind others stands first in the pipeline, the last that came before it.
        due = [cycle for cycle, _ in self.pipeline] or [self.cycle]
        if self._stage in {_Stage.BODY, _Stage.ANSWER} and not due[0].response_started:
            due[0].keep_alive = False

    def expire(self, now: float) -> None:
        """End the connection if its deadline has passed."""
        if now < self._deadline:
            return
        self._front.count(_TIMEOUTS.get(self._stage, FrontEvent.WRITE_TIMEOUT))
        if self._stage is _Stage.BODY and not self.cycle.response_started:
            self._refuse(Refusal(408, f"the body did not come within {self._front.limits.body:g} s"))
        else:
            self._done = True
            self.transport.abort()

    def end(self) -> None:
        """Close once what was written is taken; a client that does not take it is cut off."""
        self._done = True
        self._unset_keepalive_if_required()
        self.transport.close()
        self._wait(_Stage.CLOSING, self._front.limits.write)

    def _decline(self, rest: bytes) -> None:
        """Read a request that asks for another protocol as one that does not: nobody has to heed that wish."""
        kept = [(name, value) for name, value in self.headers if name not in {b"upgrade", b"connection"}]
        head = [self.parser.get_method() + b" " + self.url + b" HTTP/1.1"]
        head += [name + b": " + value for name, value in (*kept, (b"connection", b"close"))]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join((*head, b"", rest)))

    def _wait(self, stage: _Stage, seconds: float) -> None:
        self._stage, self._deadline = stage, self.loop.time() + seconds

    def _demand(self, refusal: Refusal | None) -> None:
        if refusal is not None:
            self._refusal = refusal
            raise _RefusedError

    def _bound_what_is_no_body(self) -> None:
        """Refuse heads without end, and chunks that are little more than their own sizes and extensions."""
        if self._stage is _Stage.HEAD and self._fed > self._front.limits.head + self._front.limits.url:
            self._refuse(Refusal(431, f"the head is longer than {self._front.limits.head} bytes"))
        elif self._stage is _Stage.BODY and self._fed - self._body > self._front.limits.head + self._body:
            self._refuse(Refusal(400, "the chunks are smaller than what is said about them"))

    def _refuse(self, refusal: Refusal) -> None:
        """Answer with an error and end, after the answers to the requests before."""
        self._done = True
        if self._stage is _Stage.BODY:
            if self.pipeline:
                self.pipeline.popleft()
            else:
                self.cycle.disconnected = True
                self.cycle.message_event.set()
        elif self.cycle is not None and not self.cycle.response_complete:  # type: ignore[redundant-expr]  # None before the first request, whatever uvicorn annotates
            self._refusal = refusal
            return
        if self.pipeline:
            self._refusal = refusal
            return
        self._front.count(FrontEvent.CLIENT_REFUSED if refusal is self._stranger else FrontEvent.BAD_REQUEST)
        if not self.transport.is_closing() and not (self._stage is _Stage.BODY and self.cycle.response_started):
            self.transport.write(_written(refusal))
        self.end()


class _RefusedError(Exception):
    """Stops the parser."""


def _misread(error: str) -> Refusal:
    if _OVERFLOW in error:
        return Refusal(413, "the body is too large")
    return Refusal(400, f"this is no HTTP/1.1 request: {error}")


def _written(refusal: Refusal) -> bytes:
    body = status(refusal.code, refusal.message)
    line = f"HTTP/1.1 {refusal.code} {HTTPStatus(refusal.code).phrase}"
    head = (line, "content-type: application/json", f"content-length: {len(body)}", "connection: close", "", "")
    return "\r\n".join(head).encode("ascii") + body
