"""The ASGI application: reads bodies within limits and answers reviews in the event loop.

A review takes less than a millisecond, so a thread for each would cost more than the review. Threads that wait for slow
clients would also be easy to exhaust. Requests other than reviews go to Flask without their body.
"""

from __future__ import annotations

import asyncio
import gc
import io
import sys
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gpugate.webhook.admission.app import ADMISSION, seconds_left, timeout_query, unsupported
from gpugate.webhook.admission.front.limits import FrontEvent
from gpugate.webhook.admission.gate import Answer, Later
from gpugate.webhook.admission.response import status
from gpugate.webhook.admission.review import HEAD, MAX_BODY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from _typeshed.wsgi import WSGIApplication

    from gpugate.policies.engine.evaluate import Phase
    from gpugate.webhook.admission.front.bodies import Body
    from gpugate.webhook.admission.front.handover import HandOver
    from gpugate.webhook.admission.front.load import Load, Turns
    from gpugate.webhook.admission.gate import Gate

# Any: the values of an ASGI scope differ by key.
Scope: TypeAlias = "MutableMapping[str, Any]"
Headers: TypeAlias = "list[tuple[bytes, bytes]]"


@dataclass(slots=True)
class _Reply:
    """The arguments that a WSGI application passes to `start_response`."""

    code: int = 500
    headers: Headers = field(default_factory=list)

    def start(
        self, line: str, headers: list[tuple[str, str]], _exc_info: object = None, /
    ) -> Callable[[bytes], object]:
        self.code = int(line.split(" ", 1)[0])
        self.headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        return _reject_write


def call(wsgi: WSGIApplication, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, Headers, bytes]:
    """Call a WSGI application (PEP 3333) with an ASGI request; return status, headers and body of its response."""
    reply = _Reply()
    chunks = wsgi(_environ(scope, headers), reply.start)
    try:
        content = b"".join(chunks)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    return reply.code, reply.headers, content


def _environ(scope: Scope, headers: dict[bytes, bytes]) -> dict[str, object]:
    server, port = scope.get("server") or ("localhost", 0)
    environ: dict[str, object] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8").decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "CONTENT_TYPE": text(headers, b"content-type"),
        "CONTENT_LENGTH": "0",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in headers.items():
        key = name.decode("latin-1").upper().replace("-", "_")
        if key not in {"CONTENT_TYPE", "CONTENT_LENGTH"}:
            environ[f"HTTP_{key}"] = value.decode("latin-1")
    return environ


def text(headers: dict[bytes, bytes], name: bytes) -> str:
    """Return a header's value, empty if it is missing; `name` is in lower case."""
    return headers.get(name, b"").decode("latin-1")


def _reject_write(_: bytes) -> None:
    raise RuntimeError("WSGI applications that call write() (PEP 3333) are unsupported")


# Any: the values of ASGI messages differ by key.
Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, Any]]]"
Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"
_Response: TypeAlias = "tuple[int, Headers, bytes]"  # status, headers, body

# In seconds. The API server waits this long and retries; without the header it fails (measured, kube-apiserver v1.36.3).
_RETRY: Final = (b"retry-after", b"1")
_BUSY: Final = "gpugate is overloaded: retry the request"
# The bytes of an unneeded body that are read and dropped, so that the client reads the response before the connection
# closes.
_MOST_DROPPED: Final = 2 * MAX_BODY
# Smaller bodies are not accounted for, so that clients with many large bodies cannot delay ordinary Pods.
_ACCOUNTED_FROM: Final = 64 * 1024
# From this size on a review may take longer than ten usual ones, so a worker hands it over without an attempt.
_LARGE: Final = 256 * 1024


@dataclass(slots=True)
class _Request:
    """A request and the part of its body that was read.

    Attributes:
        phase: the webhook that the review is for; None if the request is not a review.
        refusal: why the body is not read; empty if it is read.
        data: the body; only its first bytes if it is too large.
        account: the account of the body; None for a small body.
        complete: whether the client has sent the whole body.
        too_large: whether the body exceeds the size limit.
        overloaded: whether the server is overloaded, so that the client should retry.
    """

    phase: Phase | None
    refusal: str = ""
    data: bytes = b""
    account: Body | None = None
    complete: bool = False
    too_large: bool = False
    overloaded: bool = False


class _ClientGoneError(Exception):
    """The client closed the connection before it sent the whole body."""


class AdmissionAsgi:
    """Passes reviews to the gate and other requests to Flask, whose response to a review would have the same bytes."""

    def __init__(  # noqa: PLR0913 -- the parts of one worker
        self,
        gate: Gate,
        wsgi: WSGIApplication,
        load: Load,
        turns: Turns,
        count: Callable[[FrontEvent], None],
        span: Callable[[bytes], None] | None = None,
        *,
        hand_over: HandOver | None = None,
    ) -> None:
        """Create the application.

        Args:
            gate: answers reviews.
            wsgi: answers all other requests.
            load: the load of the worker.
            turns: the order in which requests continue.
            count: counts rejected and waiting requests.
            span: creates a span of the last answered review from its `traceparent` header.
            hand_over: sends expensive reviews to the process that evaluates them; None evaluates them here.
        """
        self._gate = gate
        self._wsgi = wsgi
        self._load = load
        self._turns = turns
        self._count = count
        self._span = span
        self._hand_over = hand_over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        request = _new_request(scope, headers)
        try:
            await self._read(scope, headers, receive, request)
            # Probes do not wait for a turn, so that the kubelet does not restart a server under load.
            if scope["scheme"] == "https":
                await self._turns.take()
            code, reply_headers, content = await self._answer_when_ready(scope, headers, request)
            # Free the body now, because the client may be slow to read the response.
            self._release_body(request)
            await _start(send, code, reply_headers)
            if request.complete:
                await send({"type": "http.response.body", "body": content})
                return
            await send({"type": "http.response.body", "body": content, "more_body": True})
            await _drop_rest(receive, request)
            await send({"type": "http.response.body", "body": b""})
        except _ClientGoneError:
            return
        finally:
            self._release_body(request)

    def _release_body(self, request: _Request) -> None:
        size, request.data = len(request.data), b""
        if request.account is not None:
            size = request.account.size
            self._load.bodies.end(request.account)
            request.account = None
        self._load.count_freed(size)

    async def _read(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, request: _Request) -> None:
        """Read a whole body, or the part that shows that it is not needed.

        Bytes are counted when they arrive. Counting the announced length would let a client reserve memory cheaply.
        """
        request.too_large = int(headers.get(b"content-length", b"0")) > MAX_BODY
        parts: list[bytes] = []
        size = 0
        while not request.complete:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _ClientGoneError
            part: bytes = message.get("body", b"")
            request.complete = not message.get("more_body", False)
            size += len(part)
            request.too_large = request.too_large or size > MAX_BODY
            if request.phase is None or request.refusal:
                return
            if request.too_large:
                parts.append(part)
                if size >= HEAD:
                    break
            elif request.account is None and size <= _ACCOUNTED_FROM:
                parts.append(part)
            elif not self._account_for(scope, request, parts, part):
                return
        if request.account is None:
            request.data = parts[0] if len(parts) == 1 else b"".join(parts)
        elif not request.too_large:
            request.data = self._load.bodies.finish(request.account)

    def _account_for(self, scope: Scope, request: _Request, earlier_parts: list[bytes], part: bytes) -> bool:
        """Account for a part of a body and for the parts before it; return False if the memory limit is reached."""
        bodies = self._load.bodies
        if request.account is None:
            client = scope.get("client")
            request.account = bodies.begin(client[0] if client else "")
            part = b"".join((*earlier_parts, part))
            # The first bytes contain the uid, which the response needs if the body is too large.
            request.data = part[:HEAD]
        if bodies.take(request.account, part):
            return True
        request.overloaded = True
        self._count(FrontEvent.SHED_BYTES)
        return False

    async def _answer_when_ready(self, scope: Scope, headers: dict[bytes, bytes], request: _Request) -> _Response:
        """Answer; wait first if cluster data is missing that may arrive soon."""
        paused = 0.0
        for pause in self._load.data_wait.pauses():
            answer = await self._answer_or_hand_over(scope, headers, request, paused, may_wait=True)
            if not isinstance(answer, Later):
                return answer
            if not paused:
                self._count(FrontEvent.AWAITED_CLUSTER_DATA)
            started = self._turns.now()
            with self._load.data_wait.waiting():
                await asyncio.sleep(pause)
            paused += self._turns.now() - started
            await self._turns.take()
        answer = await self._answer_or_hand_over(scope, headers, request, paused, may_wait=False)
        assert not isinstance(answer, Later)  # noqa: S101 -- for the type checker: `Later` only with may_wait
        return answer

    async def _answer_or_hand_over(
        self, scope: Scope, headers: dict[bytes, bytes], request: _Request, paused: float, *, may_wait: bool
    ) -> _Response | Later:
        """Answer; hand over a review that is large or takes long, because other reviews would wait for it."""
        if self._is_shed(scope, request, paused):
            return _error_response(429, _BUSY, _RETRY)
        if self._hand_over is None or request.phase is None:
            return self._answer(scope, headers, request, may_wait=may_wait)
        if len(request.data) < _LARGE:
            answer = self._answer(scope, headers, request, may_wait=may_wait, only_quick=True)
            if answer is not Later.CPU:
                return answer
        body, request.data = request.data, b""
        remaining = seconds_left(scope["query_string"], self._waiting_seconds(scope))
        target = f"{scope['path']}?{timeout_query(remaining)}"
        traceparent = headers.get(b"traceparent", b"")
        with self._load.handed_over():
            response = await self._hand_over.send(target, traceparent, body, remaining)
        if response is None:
            request.data = body
            return self._answer(scope, headers, request, may_wait=may_wait)
        if response.code == 429:
            return _error_response(429, _BUSY, _RETRY)
        return response.code, _json_headers(response.body), response.body

    def _waiting_seconds(self, scope: Scope) -> float:
        """Return the seconds since the request was complete."""
        complete = scope["state"].get("complete")
        return self._turns.now() - complete if complete is not None else 0.0

    def _is_shed(self, scope: Scope, request: _Request, paused: float) -> bool:
        """Return whether the client has to retry because of the load."""
        late = not paused and (scope["state"].get("full") or self._load.is_late(self._waiting_seconds(scope)))
        if scope["scheme"] == "https" and late:
            self._count(FrontEvent.SHED_WORK)
            request.overloaded = True
        return request.overloaded

    def _answer(
        self,
        scope: Scope,
        headers: dict[bytes, bytes],
        request: _Request,
        *,
        may_wait: bool,
        only_quick: bool = False,
    ) -> _Response | Later:
        if request.phase is not None:
            started = perf_counter()
            remaining = seconds_left(scope["query_string"], self._waiting_seconds(scope))
            may_wait = may_wait and self._load.data_wait.allows(remaining)
            answer = self._review(request.phase, remaining, request, may_wait=may_wait, only_quick=only_quick)
            self._load.add_duration(perf_counter() - started)
            if isinstance(answer, Later):
                return answer
            if self._span is not None:
                self._span(headers.get(b"traceparent", b""))
            return answer.status, _json_headers(answer.body), answer.body
        if request.too_large:
            return _error_response(413, "the body is too large")
        if b"%" in scope["raw_path"]:
            return _error_response(404, f"{scope['method']}: not found")
        return call(self._wsgi, scope, headers)

    def _review(
        self, phase: Phase, remaining: float, request: _Request, *, may_wait: bool, only_quick: bool
    ) -> Answer | Later:
        if request.refusal:
            return Answer(415, status(415, request.refusal))
        if request.too_large:
            return self._gate.too_large(phase, request.data[:HEAD])
        # A large review creates many objects without cycles and frees them all. Collections meanwhile double its time.
        pauses = len(request.data) > _ACCOUNTED_FROM and gc.isenabled()
        if pauses:
            gc.disable()
        try:
            return self._gate.try_answer(phase, request.data, remaining, may_wait=may_wait, only_quick=only_quick)
        finally:
            if pauses:
                gc.enable()


def _new_request(scope: Scope, headers: dict[bytes, bytes]) -> _Request:
    # The raw path is compared, because a percent-encoded path is another spelling of a plain one.
    path = scope["raw_path"].decode("ascii", "replace")
    phase = ADMISSION.get(path) if scope["method"] == "POST" and scope["scheme"] == "https" else None
    if phase is None:
        return _Request(None)
    media_type = text(headers, b"content-type")
    return _Request(phase, unsupported(media_type, text(headers, b"content-encoding")))


async def _drop_rest(receive: Receive, request: _Request) -> None:
    dropped = 0
    while not request.complete and dropped < _MOST_DROPPED:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientGoneError
        dropped += len(message.get("body", b""))
        request.complete = not message.get("more_body", False)


async def _start(send: Send, code: int, headers: Headers) -> None:
    if code >= 400 and code != 429:
        # The client is not the API server, or the next bytes on the connection may not begin a request.
        headers = [*headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": code, "headers": headers})


def _error_response(code: int, message: str, *headers: tuple[bytes, bytes]) -> tuple[int, Headers, bytes]:
    body = status(code, message)
    return code, [*_json_headers(body), *headers], body


def _json_headers(body: bytes) -> Headers:
    return [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
