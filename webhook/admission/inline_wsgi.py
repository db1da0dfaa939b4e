"""Calls a WSGI application from the event loop: no thread, and no body.

What has a body is a review, which does not come here; whatever else is sent is not kept.
Reviews take well under a millisecond, so a thread for each would cost more than it gives, and threads that wait for
slow clients are what an attacker exhausts first.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from _typeshed.wsgi import WSGIApplication

# Any: the values of an ASGI scope differ by key.
Scope: TypeAlias = "MutableMapping[str, Any]"
Headers: TypeAlias = "list[tuple[bytes, bytes]]"


@dataclass(slots=True)
class _Reply:
    """What a WSGI application hands to `start_response`."""

    code: int = 500
    headers: Headers = field(default_factory=list)

    def start(
        self, line: str, headers: list[tuple[str, str]], _exc_info: object = None, /
    ) -> Callable[[bytes], object]:
        self.code = int(line.split(" ", 1)[0])
        self.headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        return _refuse_write


def call(wsgi: WSGIApplication, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, Headers, bytes]:
    """Return status, headers and body of what a WSGI application (PEP 3333) answers to an ASGI request."""
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
    """Return a header's value, or nothing; `name` is in lower case."""
    return headers.get(name, b"").decode("latin-1")


def _refuse_write(_: bytes) -> None:
    raise RuntimeError("an application that calls write() (PEP 3333, for old ones) cannot run here")
