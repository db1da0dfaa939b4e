"""A webhook on loopback that does what a test says, and keeps what it saw of the API server."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from api_server.stub_webhook import allowing
from stub_webhook.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from api_server.responses import HttpAnswer

PROBE = "/in-force/"


@dataclass(slots=True)
class Connection:
    """One connection of the API server.

    Attributes:
        protocol: what ALPN agreed on.
        resumed: whether it took up an earlier TLS session.
        paths: where its requests went.
        open: whether the client still holds it.
    """

    protocol: str | None = None
    resumed: bool = False
    paths: list[str] = field(default_factory=list)
    open: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request; `query` is the part of the URL behind the path, `request` that of the AdmissionReview."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    request: dict[str, Any]


def allow(call: Call) -> HttpAnswer:
    """Answer as a webhook that has nothing to say."""
    return allowing(call.request)


class Stub(ThreadingHTTPServer):
    """A TLS server whose behaviour and certificate may change between calls.

    Attributes:
        behaviour: from a call to what is sent back; None closes the connection without a word.
        calls: every call, but for those that only ask whether a configuration is in force.
        connections: every connection whose TLS handshake came to an end.
        authority: who signs its certificate.
    """

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, folder: Path, protocols: Sequence[str] = ("http/1.1",)) -> None:
        self.behaviour: Callable[[Call], HttpAnswer | None] = allow
        self.calls: list[Call] = []
        self.probes: list[str] = []
        self.connections: list[Connection] = []
        self._folder = folder
        self._protocols = protocols
        self._open: set[socket.socket] = set()
        self.certify(Authority("stub"))
        super().__init__(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    def certify(self, authority: Authority, names: Sequence[str] = ("127.0.0.1",)) -> None:
        """Show new connections a certificate of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.server_pair(self._folder, names))
        context.set_alpn_protocols(list(self._protocols))
        self.authority, self._context = authority, context

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server_port}"

    def asked(self, path: str = "/") -> list[Call]:
        """Return the calls of a path."""
        return [call for call in self.calls if call.path == path]

    def connected(self, path: str = "/") -> list[Connection]:
        """Return the connections that were used for a path."""
        return [connection for connection in self.connections if path in connection.paths]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        for each in tuple(self._open):
            # The client may be gone already.
            with contextlib.suppress(OSError):
                # Not that of the TLS socket, which must not be changed under the thread that reads it.
                socket.socket.shutdown(each, socket.SHUT_RDWR)
        self.server_close()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            wrapped = self._context.wrap_socket(request, server_side=True)
        except OSError:
            request.close()  # the client did not want us
            return
        self._open.add(wrapped)
        connection = Connection(wrapped.selected_alpn_protocol(), bool(wrapped.session_reused))
        self.connections.append(connection)
        wrapped.connection = connection
        super().process_request_thread(wrapped, client_address)
        self._open.discard(wrapped)
        connection.open = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: connections that break are what is tested."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stub
    # With Nagle's algorithm and delayed acknowledgements an answer in two parts takes 40 ms.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        self.connection.connection.paths.append(path)  # type: ignore[attr-defined]
        request = json.loads(body)["request"] if body else {}
        call = Call(self.command, path, query, dict(self.headers.items()), body, request)
        if path.startswith(PROBE):
            self.server.probes.append(path)
            self._send(allow(call))
            return
        self.server.calls.append(call)
        found = self.server.behaviour(call)
        if found is None:
            self.close_connection = True
        else:
            self._send(found)

    do_GET = do_POST  # noqa: N815 -- the name that http.server calls

    def _send(self, found: HttpAnswer) -> None:
        headers = {"content-length": str(len(found.body)), **found.headers}
        head = [f"HTTP/1.1 {found.status} {self.responses.get(found.status, ('',))[0]}"]
        head += [f"{name}: {value}" for name, value in headers.items() if value]
        self.wfile.write("\r\n".join([*head, "", ""]).encode() + found.body)
        self.close_connection = "close" in headers.get("connection", "").lower()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
