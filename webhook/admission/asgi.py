"""The webhook as an ASGI application: reads a body under bounds, and answers in the event loop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gpugate.webhook.admission import inline_wsgi
from gpugate.webhook.admission.app import ADMISSION
from gpugate.webhook.admission.attribution import HEAD, MAX_BODY
from gpugate.webhook.admission.front.events import FrontEvent
from gpugate.webhook.admission.gate import Answer
from gpugate.webhook.admission.media_type import unsupported
from gpugate.webhook.admission.response import status
from gpugate.webhook.admission.time_budget import seconds_left

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from _typeshed.wsgi import WSGIApplication

    from gpugate.policies.engine.evaluate import Phase
    from gpugate.webhook.admission.front.load import Load, Turns
    from gpugate.webhook.admission.gate import Gate
    from gpugate.webhook.admission.inline_wsgi import Headers, Scope

# Any: the values of ASGI messages differ by key.
Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, Any]]]"
Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"
_Response: TypeAlias = "tuple[int, Headers, bytes]"  # status, headers, body
Asgi: TypeAlias = "Callable[[Scope, Receive, Send], Awaitable[None]]"

# The API server waits this long and calls again (measured with kube-apiserver v1.36.3); without the header it gives up.
_RETRY: Final = (b"retry-after", b"1")
_BUSY: Final = "gpugate has more work than it can do at once: call again"
# What of a body that is refused is read and dropped, so that the client reads the answer before it meets a closed door.
_MOST_DROPPED: Final = 2 * MAX_BODY
# Smaller bodies are not accounted for: whoever holds many large ones must not keep ordinary Pods out.
_ACCOUNTED_FROM: Final = 64 * 1024


@dataclass(slots=True)
class _Body:
    """A body as far as it was read."""

    data: bytes = b""
    taken: int = 0
    complete: bool = False
    too_large: bool = False
    no_room: bool = False


class _ClientGoneError(Exception):
    """The client closed the connection before it sent the whole body."""


class AdmissionAsgi:
    """Sends reviews straight to the gate and the rest to the Flask application, which gives reviews the same bytes."""

    def __init__(
        self,
        gate: Gate,
        wsgi: WSGIApplication,
        load: Load,
        turns: Turns,
        count: Callable[[FrontEvent], None],
        span: Callable[[bytes], None] | None = None,
    ) -> None:
        """Make the application.

        Args:
            gate: answers reviews.
            wsgi: answers everything else.
            load: what the worker has taken on.
            turns: whose turn it is.
            count: counts what was turned away.
            span: makes a span of the review that was answered last, from its `traceparent` header.
        """
        self._gate = gate
        self._wsgi = wsgi
        self._load = load
        self._turns = turns
        self._count = count
        self._span = span

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        body = _Body()
        try:
            await self._read(headers, receive, body)
            # Probes wait for nobody: a kubelet must not end a server because it has much to do.
            if scope["scheme"] == "https":
                await self._turns.take()
            code, answered, content = await self._settled(scope, headers, body)
            await _start(send, code, answered)
            if body.complete:
                await send({"type": "http.response.body", "body": content})
                return
            await send({"type": "http.response.body", "body": content, "more_body": True})
            await _drop_rest(receive, body)
            await send({"type": "http.response.body", "body": b""})
        except _ClientGoneError:
            return
        finally:
            self._load.give_back(body.taken)

    async def _read(self, headers: dict[bytes, bytes], receive: Receive, body: _Body) -> None:
        """Read a body whole, or as far as it takes to know that it is refused.

        Bytes count as they come: to announce many and send few would be a cheap way to keep others out.
        """
        announced = int(headers.get(b"content-length", b"0"))
        body.too_large = announced > MAX_BODY
        parts: list[bytes] = []
        size = 0
        while not body.complete:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _ClientGoneError
            part = message.get("body", b"")
            body.complete = not message.get("more_body", False)
            size += len(part)
            parts.append(part)
            body.too_large = body.too_large or size > MAX_BODY
            if body.too_large:
                if size >= HEAD:
                    break
            elif size > _ACCOUNTED_FROM and not self._take(size - body.taken, body):
                return
        body.data = parts[0] if len(parts) == 1 else b"".join(parts)

    def _take(self, size: int, body: _Body) -> bool:
        if not self._load.take(size):
            body.no_room = True
            self._count(FrontEvent.SHED_BYTES)
            return False
        body.taken += size
        return True

    async def _settled(self, scope: Scope, headers: dict[bytes, bytes], body: _Body) -> _Response:
        """Answer, after a while where a fact is missing that may be known by then."""
        paused = 0.0
        for pause in self._load.patience.pauses():
            answer = self._answer(scope, headers, body, paused, may_wait=True)
            if answer is not None:
                return answer
            if not paused:
                self._count(FrontEvent.AWAITED_FACTS)
            before = self._turns.now()
            with self._load.patience.waiting():
                await asyncio.sleep(pause)
            paused += self._turns.now() - before
            await self._turns.take()
        answer = self._answer(scope, headers, body, paused, may_wait=False)
        assert answer is not None  # noqa: S101 -- for the type checker: nothing is early when nobody may wait
        return answer

    def _answer(
        self, scope: Scope, headers: dict[bytes, bytes], body: _Body, paused: float, *, may_wait: bool
    ) -> _Response | None:
        complete = scope["state"].get("complete")
        waited = self._turns.now() - complete if complete is not None else 0.0
        late = not paused and (scope["state"].get("full") or self._load.is_late(waited))
        if scope["scheme"] == "https" and late:
            self._count(FrontEvent.SHED_WORK)
            body.no_room = True
        if body.no_room:
            return _said(429, _BUSY, _RETRY)
        # A path that needs decoding is another way to write one that does not.
        path = scope["raw_path"].decode("ascii", "replace")
        phase = ADMISSION.get(path) if scope["method"] == "POST" and scope["scheme"] == "https" else None
        if phase is not None:
            started = perf_counter()
            left = seconds_left(scope["query_string"], waited)
            answer = self._review(phase, left, headers, body, may_wait=may_wait and self._load.patience.allows(left))
            self._load.took(perf_counter() - started)
            if answer is None:
                return None
            if self._span is not None:
                self._span(headers.get(b"traceparent", b""))
            return answer.status, _json_headers(answer.body), answer.body
        if body.too_large:
            return _said(413, "the body is too large")
        if "%" in path:
            return _said(404, f"{scope['method']}: not found")
        return inline_wsgi.call(self._wsgi, scope, headers, body.data)

    def _review(
        self, phase: Phase, left: float, headers: dict[bytes, bytes], body: _Body, *, may_wait: bool
    ) -> Answer | None:
        media_type = inline_wsgi.text(headers, b"content-type")
        refused = unsupported(media_type, inline_wsgi.text(headers, b"content-encoding"))
        if refused:
            return Answer(415, status(415, refused))
        if body.too_large:
            return self._gate.too_large(phase, body.data[:HEAD])
        return self._gate.answer(phase, body.data, left, may_wait=may_wait)


async def _drop_rest(receive: Receive, body: _Body) -> None:
    dropped = 0
    while not body.complete and dropped < _MOST_DROPPED:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientGoneError
        dropped += len(message.get("body", b""))
        body.complete = not message.get("more_body", False)


async def _start(send: Send, code: int, headers: Headers) -> None:
    if code >= 400 and code != 429:
        # Not the API server, or one whose next bytes are not to be trusted.
        headers = [*headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": code, "headers": headers})


def _said(code: int, message: str, *headers: tuple[bytes, bytes]) -> tuple[int, Headers, bytes]:
    body = status(code, message)
    return code, [*_json_headers(body), *headers], body


def _json_headers(body: bytes) -> Headers:
    return [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
