"""The webhook as an ASGI application: reads a body under a cap, and answers in the event loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from gpugate.webhook.admission import inline_wsgi
from gpugate.webhook.admission.app import ADMISSION
from gpugate.webhook.admission.attribution import HEAD, MAX_BODY
from gpugate.webhook.admission.gate import Answer
from gpugate.webhook.admission.media_type import unsupported
from gpugate.webhook.admission.response import status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from _typeshed.wsgi import WSGIApplication

    from gpugate.policies.engine.evaluate import Phase
    from gpugate.webhook.admission.gate import Gate
    from gpugate.webhook.admission.inline_wsgi import Headers, Scope

# Any: the values of ASGI messages differ by key.
Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, Any]]]"
Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"


@dataclass(frozen=True, slots=True)
class _Body:
    """A body that was read whole, or its first bytes when it is larger than may be read."""

    data: bytes
    too_large: bool = False


class _ClientGoneError(Exception):
    """The client closed the connection before it sent the whole body."""


class AdmissionAsgi:
    """Sends reviews straight to the gate and the rest to the Flask application, which gives reviews the same bytes."""

    def __init__(self, gate: Gate, wsgi: WSGIApplication) -> None:
        self._gate = gate
        self._wsgi = wsgi

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            body = await _read(receive)
        except _ClientGoneError:
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        phase = ADMISSION.get(scope["path"]) if scope["method"] == "POST" else None
        if phase is not None:
            answer = self._review(phase, headers, body)
            await _reply(send, answer.status, _json_headers(answer.body), answer.body)
        elif body.too_large:
            refusal = status(413, "the body is too large")
            await _reply(send, 413, _json_headers(refusal), refusal)
        else:
            await _reply(send, *inline_wsgi.call(self._wsgi, scope, headers, body.data))

    def _review(self, phase: Phase, headers: dict[bytes, bytes], body: _Body) -> Answer:
        media_type = inline_wsgi.text(headers, b"content-type")
        refused = unsupported(media_type, inline_wsgi.text(headers, b"content-encoding"))
        if refused:
            return Answer(415, status(415, refused))
        if body.too_large:
            return self._gate.too_large(phase, body.data)
        return self._gate.answer(phase, body.data)


async def _read(receive: Receive) -> _Body:
    """Read the body; one that is too large is read to its end and dropped, so that the client reads the answer.

    Past twice what is allowed the client is not waited for any more.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        parts.append(part)
        if size > MAX_BODY:
            parts = [b"".join(parts)[:HEAD]]
        if not message.get("more_body", False) or size > 2 * MAX_BODY:
            return _Body(b"".join(parts), size > MAX_BODY)


async def _reply(send: Send, code: int, headers: Headers, body: bytes) -> None:
    if code >= 400:
        # Not the API server, or one whose next bytes are not to be trusted.
        headers = [*headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _json_headers(body: bytes) -> Headers:
    return [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
