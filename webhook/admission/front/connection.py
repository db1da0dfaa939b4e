"""One client connection: uvicorn's HTTP/1.1 protocol with deadlines, strict heads and errors with a cause."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gpugate.certs.serving import SmallRecordsError
from gpugate.webhook.admission.front.limits import FrontEvent
from gpugate.webhook.admission.response import status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet

    import uvicorn
    from uvicorn.server import ServerState

    from gpugate.webhook.admission.front.limits import Limits, Slot
    from gpugate.webhook.admission.front.load import Load

# What the client of a request used; the application answers reviews only for https.
Scheme: TypeAlias = Literal["http", "https"]

_WITH_BODY = frozenset({b"POST", b"PUT", b"PATCH"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP status and an error message."""

    code: int
    message: str


@dataclass(slots=True)
class HeadSize:
    """The size of a head, counted while it arrives."""

    limits: Limits
    total: int = 0
    count: int = 0

    def url(self, size: int) -> Refusal | None:
        """Return the error for a request target of `size` bytes; None if it is allowed."""
        if size > self.limits.url:
            return Refusal(414, f"the URL is longer than {self.limits.url} bytes")
        return None

    def header(self, name: bytes, value: bytes) -> Refusal | None:
        """Count a header; return an error if the head is too large."""
        size = len(name) + len(value)
        self.total += size
        self.count += 1
        if size > self.limits.header_line:
            return Refusal(431, f"a header is longer than {self.limits.header_line} bytes")
        if self.total > self.limits.head or self.count > self.limits.headers:
            return Refusal(431, f"more than {self.limits.headers} headers or {self.limits.head} bytes of headers")
        return None


def find_head_error(method: bytes, version: str, url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
    """Return the error in a head, None if it is valid; header names are in lower case.

    The parser has already rejected heads that two servers could read differently: both Content-Length and
    Transfer-Encoding, either of them twice, folded lines, bare line feeds, control characters.
    """
    values: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        if b"_" in name:
            # WSGI gives A-B and A_B the same name.
            return Refusal(400, "header names must not contain an underscore")
        values.setdefault(name, []).append(value.strip().lower())
    return _line(method, version, url) or _framing(method, version, values)


def _line(method: bytes, version: str, url: bytes) -> Refusal | None:
    if version not in {"1.0", "1.1"}:
        return Refusal(400, "only HTTP/1.1 and HTTP/1.0 are supported")
    if not url.startswith(b"/") or b"#" in url or method == b"CONNECT":
        return Refusal(400, "the request target must be a path: this server is not a proxy")
    return None


def _framing(method: bytes, version: str, values: dict[bytes, list[bytes]]) -> Refusal | None:
    hosts = values.get(b"host", [])
    if len(hosts) > 1 or (version == "1.1" and not hosts):
        return Refusal(400, "exactly one Host header is required")
    encodings = values.get(b"transfer-encoding", [])
    if encodings not in ([], [b"chunked"]):
        return Refusal(501, "the only supported Transfer-Encoding is chunked")
    if values.get(b"expect", [b"100-continue"]) != [b"100-continue"]:
        return Refusal(417, "the only supported Expect header is 100-continue")
    if method in _WITH_BODY and not encodings and b"content-length" not in values:
        return Refusal(411, "a Content-Length header is required")
    return None


def check_client(transport: asyncio.BaseTransport, allowed: AbstractSet[str] | None) -> Refusal | None:
    """Return why a client is not allowed; None if it is.

    Args:
        transport: the connection after the handshake, which has verified the authority of the certificate.
        allowed: the allowed common names or DNS names of client certificates; None allows every client. A connection
            without TLS is always allowed, because only probes and scrapes use it.
    """
    if allowed is None or transport.get_extra_info("ssl_object") is None:
        return None
    if certificate_names(transport.get_extra_info("peercert") or {}).isdisjoint(allowed):
        return Refusal(HTTPStatus.FORBIDDEN, "the client certificate has no allowed name (--client-name)")
    return None


def certificate_names(certificate: dict[str, Any]) -> set[str]:
    """Return the common names and DNS names of a certificate in the format of `ssl.SSLSocket.getpeercert`."""
    subject = {value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"}
    return subject | {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}


class CoalescingTransport(asyncio.Transport):
    """Joins the writes of one iteration of the event loop into one.

    The head and the body of a response are written separately. A TLS record and a system call for each would be a tenth
    of the cost of a review.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes | bytearray | memoryview] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data in the next iteration of the event loop."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send several parts in the next iteration of the event loop."""
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        """Send the written data, and close."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once, without sending the written data."""
        self._parts.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether the transport is closing or closed."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Stop reading until `resume_reading`."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Continue to read."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Return a property of the connection, such as `peercert`."""
        return self._transport.get_extra_info(name, default)

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


class _Stage(Enum):
    IDLE = "waits for a request"
    HEAD = "reads a head"
    BODY = "reads a body"
    ANSWER = "answers"
    CLOSING = "closes"


_TIMEOUTS = {
    _Stage.HEAD: FrontEvent.HEADER_TIMEOUT,
    _Stage.BODY: FrontEvent.BODY_TIMEOUT,
    _Stage.CLOSING: FrontEvent.WRITE_TIMEOUT,
}


# The parser's error for a Content-Length above 64 bits.
_OVERFLOW = "Content-Length overflow"


class Owner(Protocol):
    """The front of a worker, as far as its connections use it."""

    config: uvicorn.Config
    state: ServerState
    limits: Limits
    load: Load
    client_names: frozenset[str] | None
    count: Callable[[FrontEvent], None]
    open: set[Connection]
    draining: bool


class Connection(HttpToolsProtocol):
    """A connection of the front.

    The front checks deadlines periodically with `expire`. A timer for each request would cost more than all other work
    of the connection.
    """

    def __init__(self, front: Owner, slot: Slot, scheme: Scheme) -> None:
        super().__init__(front.config, front.state, {})
        self._scheme = scheme
        self._front = front
        self._slot = slot
        self._stage = _Stage.HEAD
        self._deadline = math.inf
        self._waiting = 0
        self._reads_head = False
        # The bytes received in the current stage of this request, and the bytes of its body.
        self._received = 0
        self._body = 0
        self._head = HeadSize(front.limits)
        self._refusal: Refusal | None = None
        self._done = False
        self._client_refusal: Refusal | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the deadline for the first request."""
        self._client_refusal = check_client(transport, self._front.client_names)
        super().connection_made(CoalescingTransport(cast("asyncio.Transport", transport), self.loop))
        self.scheme = self._scheme
        self._wait(_Stage.HEAD, self._front.limits.header)
        self._slot.gives_way = self.give_way
        self._front.open.add(self)

    def abandon(self) -> None:
        """Release the resources of a connection that was never made, because its handshake failed."""
        self._slot.release()
        # The parser refers to the connection. The cycle would stay in memory until the garbage collector runs.
        self.parser = None  # type: ignore[assignment]  # as uvicorn does when a connection is lost

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the resources of the connection."""
        self._slot.release()
        self._front.open.discard(self)
        self._front.load.waiting -= self._waiting
        if isinstance(exc, SmallRecordsError):
            self._front.count(FrontEvent.BAD_REQUEST)
        elif self._stage in {_Stage.BODY, _Stage.ANSWER}:
            self._front.count(FrontEvent.CLIENT_GONE)
        self._waiting, self._stage, self._deadline, self._done = 0, _Stage.CLOSING, math.inf, True
        super().connection_lost(exc)
        # Requests that were not started refer to the connection, as the parser does in `abandon`.
        self.pipeline.clear()
        self.cycle = None  # type: ignore[assignment]  # as before the first request

    def data_received(self, data: bytes) -> None:
        """Parse received data; it is dropped after an error and while the connection closes."""
        if self._done:
            return
        self._unset_keepalive_if_required()
        if self._stage is _Stage.IDLE:
            self._wait(_Stage.HEAD, self._front.limits.header)
        previous = self._stage, self.cycle
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(self._refusal or _parse_error(str(error)))
        else:
            self._received = self._received + len(data) if (self._stage, self.cycle) == previous else 0
            self._limit_overhead()

    def on_message_begin(self) -> None:
        """Reset the head size for a new request."""
        super().on_message_begin()
        self._reads_head = True
        self._head = HeadSize(self._front.limits)

    def on_url(self, url: bytes) -> None:
        """Store the target, within limits."""
        super().on_url(url)
        self._require_none(self._head.url(len(self.url)))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header, within limits."""
        self._require_none(self._head.header(name, value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check the head, and start the application."""
        method, version = self.parser.get_method(), self.parser.get_http_version()
        self._require_none(self._client_refusal or find_head_error(method, version, self.url, self.headers))
        self._require_none(self._too_many())
        if self.parser.should_upgrade():
            return
        super().on_headers_complete()
        self._reads_head, self._body = False, 0
        if self._front.draining:
            self.cycle.keep_alive = False
        self._wait(_Stage.BODY, self._front.limits.body)

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Record when the request was complete, and whether the worker is overloaded."""
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
        """Wait for the next request, or close the connection."""
        if self._waiting:
            self._waiting -= 1
            self._front.load.waiting -= 1
        has_pipelined = bool(self.pipeline)
        super().on_response_complete()
        if self._refusal is not None and not has_pipelined:
            self._refuse(self._refusal)
        elif self.transport.is_closing() or (self._done and not has_pipelined):
            self.end()
        elif self._reads_head:
            self._wait(_Stage.HEAD, self._front.limits.header)
        elif self._stage is _Stage.ANSWER and not self._waiting:
            self._stage = _Stage.IDLE

    def pause_writing(self) -> None:
        """Start the deadline for a client that does not read its response."""
        super().pause_writing()
        self._deadline = self.loop.time() + self._front.limits.write

    def resume_writing(self) -> None:
        """Stop the deadline, because the client reads."""
        super().resume_writing()
        # The client may read the end of a long response after the connection starts to wait for the next request.
        if self._stage in {_Stage.ANSWER, _Stage.IDLE}:
            self._deadline = math.inf

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress."""
        return self._stage is _Stage.IDLE

    def leave_after_answer(self) -> None:
        """Close the connection after the response to the last received request, if one is pending."""
        # uvicorn puts new requests at the front of the pipeline, so its first entry is the last request.
        pending = [cycle for cycle, _ in self.pipeline] or [self.cycle]
        if self._stage in {_Stage.BODY, _Stage.ANSWER} and not pending[0].response_started:
            pending[0].keep_alive = False

    def expire(self, now: float) -> None:
        """Close the connection if its deadline has passed."""
        if now < self._deadline:
            return
        self._front.count(_TIMEOUTS.get(self._stage, FrontEvent.WRITE_TIMEOUT))
        if self._stage is _Stage.BODY and not self.cycle.response_started:
            self._refuse(Refusal(408, f"the body did not arrive within {self._front.limits.body:g} s"))
        else:
            self._done = True
            self.transport.abort()

    def give_way(self) -> bool:
        """Close the connection for another one; return False if a request is being answered."""
        if self._stage is _Stage.ANSWER and self._deadline == math.inf:
            return False
        self._done = True
        self.transport.abort()
        return True

    def end(self) -> None:
        """Close after the client has read the written data, or when the write limit expires."""
        self._done = True
        self._unset_keepalive_if_required()
        self.transport.close()
        self._wait(_Stage.CLOSING, self._front.limits.write)

    def _decline(self, remainder: bytes) -> None:
        """Parse a request with an Upgrade header as one without it; a server may ignore Upgrade (RFC 9110, 7.8)."""
        headers = [(name, value) for name, value in self.headers if name not in {b"upgrade", b"connection"}]
        head = [self.parser.get_method() + b" " + self.url + b" HTTP/1.1"]
        head += [name + b": " + value for name, value in (*headers, (b"connection", b"close"))]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join((*head, b"", remainder)))

    def _wait(self, stage: _Stage, seconds: float) -> None:
        self._stage, self._deadline = stage, self.loop.time() + seconds

    def _too_many(self) -> Refusal | None:
        """Return the error for a request that is sent before too many others have a response.

        uvicorn stops reading at the first such request, but parses the rest of what it has received, which may contain
        thousands, and it reads again after each response.
        """
        most = self._front.limits.pipelined
        return Refusal(400, f"more than {most} requests wait for a response") if len(self.pipeline) >= most else None

    def _require_none(self, refusal: Refusal | None) -> None:
        if refusal is not None:
            self._refusal = refusal
            raise _RefusedError

    def _limit_overhead(self) -> None:
        """Reject heads without an end, and chunks whose sizes and extensions are larger than their content."""
        if self._stage is _Stage.HEAD and self._received > self._front.limits.head + self._front.limits.url:
            self._refuse(Refusal(431, f"the head is longer than {self._front.limits.head} bytes"))
        elif self._stage is _Stage.BODY and self._received - self._body > self._front.limits.head + self._body:
            self._refuse(Refusal(400, "the chunks are smaller than their sizes and extensions"))

    def _refuse(self, refusal: Refusal) -> None:
        """Send an error and close, after the responses to earlier requests."""
        self._done = True
        if self._stage is _Stage.BODY and self.pipeline:
            # The request waits in the pipeline, because an earlier one has no response yet. Its response comes first.
            self.pipeline.popleft()
            self._refusal, self._deadline = refusal, math.inf
            return
        if self._stage is _Stage.BODY:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        elif self.cycle is not None and not self.cycle.response_complete:  # type: ignore[redundant-expr]  # None before the first request, whatever uvicorn annotates
            self._refusal = refusal
            return
        self._front.count(FrontEvent.CLIENT_REFUSED if refusal is self._client_refusal else FrontEvent.BAD_REQUEST)
        if not self.transport.is_closing() and not (self._stage is _Stage.BODY and self.cycle.response_started):
            self.transport.write(_encode_refusal(refusal))
        self.end()


class _RefusedError(Exception):
    """Raised in a callback to stop the parser."""


def _parse_error(error: str) -> Refusal:
    if _OVERFLOW in error:
        return Refusal(413, "the body is too large")
    return Refusal(400, f"invalid HTTP/1.1 request: {error}")


def _encode_refusal(refusal: Refusal) -> bytes:
    body = status(refusal.code, refusal.message)
    line = f"HTTP/1.1 {refusal.code} {HTTPStatus(refusal.code).phrase}"
    head = (line, "content-type: application/json", f"content-length: {len(body)}", "connection: close", "", "")
    return "\r\n".join(head).encode("ascii") + body
