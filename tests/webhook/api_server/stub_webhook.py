"""A webhook that does what a test says: over TLS, or as a plain function."""

from __future__ import annotations

import base64
import datetime as dt
import json
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from api_server.admission import ApiServer
from api_server.responses import HttpAnswer

from gpugate.certs.pki import certificate_authority, server_certificate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from api_server.webhooks import Webhook

Json = dict[str, Any]


def answer(response: Any, *, status: int = 200, **envelope: Any) -> HttpAnswer:
    """An AdmissionReview with a response; members of the envelope that are None are left out."""
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response} | envelope
    body = json.dumps({key: value for key, value in review.items() if value is not None})
    return raw(body.encode(), status)


def raw(body: bytes, status: int = 200, **headers: str) -> HttpAnswer:
    """Bytes as they are."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpAnswer(status, {"content-type": "application/json"} | named, body)


def allowing(request: Json, **members: Any) -> HttpAnswer:
    """A correct answer to a request, and more members or others of its response."""
    return answer({"uid": request["uid"], "allowed": True} | members)


def patching(request: Json, operations: Sequence[Json] | bytes, **members: Any) -> HttpAnswer:
    """A correct answer that carries a patch, which need not be one."""
    patch = operations if isinstance(operations, bytes) else json.dumps(operations).encode()
    encoded = base64.b64encode(patch).decode()
    return allowing(request, **({"patch": encoded, "patchType": "JSONPatch"} | members))


def with_webhook(phase: str, webhook: Webhook) -> ApiServer:
    """An API server with one webhook, `mutating` or `validating`."""
    return ApiServer(mutating=(webhook,)) if phase == "mutating" else ApiServer(validating=(webhook,))


@dataclass(slots=True)
class InProcess:
    """A webhook that is a function; keeps the requests it got."""

    behaviour: Callable[[Json], HttpAnswer]
    seen: list[Json] = field(default_factory=list)

    def post(self, body: bytes, timeout_seconds: float) -> HttpAnswer:
        """Answer a body."""
        assert timeout_seconds > 0
        self.seen.append(json.loads(body)["request"])
        return self.behaviour(self.seen[-1])


class StubServer(ThreadingHTTPServer):
    """A TLS server on loopback whose behaviour can be changed between calls.

    Attributes:
        ca_file: who vouches for it.
        behaviour: from the request of a review to what is sent back; None closes the connection without a word.
        seen: the request line, headers and body of every call.
    """

    daemon_threads = False

    def __init__(self, directory: Path, names: Sequence[str] = ("127.0.0.1",)) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behaviour: Callable[[Json], HttpAnswer | None] = allowing
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.ca_file = directory / "ca.crt"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(_key_pair(directory, names))
        # The handshake belongs to the thread of the connection, not to the one that accepts.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"https://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: connections that break are what is tested."""

    def stop(self) -> None:
        """End it; connections must have been closed by the client."""
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StubServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.requestline, dict(self.headers.items()), body))
        found = self.server.behaviour(json.loads(body)["request"])
        if found is None:
            self.close_connection = True
            return
        headers = {"content-length": str(len(found.body)), **found.headers}
        head = [f"HTTP/1.1 {found.status} {self.responses.get(found.status, ('',))[0]}"]
        head += [f"{name}: {value}" for name, value in headers.items() if value]
        self.wfile.write("\r\n".join([*head, "", ""]).encode() + found.body)
        self.close_connection = "close" in headers.get("connection", "")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _key_pair(directory: Path, names: Sequence[str]) -> Path:
    now, day = dt.datetime.now(tz=dt.UTC), dt.timedelta(days=1)
    authority = certificate_authority("stub", now=now, lifetime=day)
    pair = server_certificate(authority, names, now=now, lifetime=day)
    (directory / "ca.crt").write_bytes(authority.certificate)
    file = directory / "server.pem"
    file.write_bytes(pair.certificate + pair.key)
    return file
