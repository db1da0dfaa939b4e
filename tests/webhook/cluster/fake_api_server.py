"""An API server for tests: discovery, GET, LIST in pages, WATCH, POST, PUT, PATCH and DELETE over a real socket.

`store` contains the objects. Tests script failures: each of `answers` is sent once, to the next request whose
path and query contain its text. `requests` records all requests.
"""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from cluster.fake_api_handler import Handler
from cluster.fake_api_store import Resource, StatusError, Store

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from cluster.fake_api_store import Json


@dataclass(frozen=True)
class Answer:
    """A scripted response; `hang` stalls after the body, `cut` disconnects after it, `drop` disconnects without one."""

    to: str
    code: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False
    drop: bool = False


def status(to: str, code: int, reason: str, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(to, code, json.dumps(StatusError(code, reason).status).encode(), named)


class FakeApiServer:
    """Listens on loopback from `start` to `stop`; before that its port refuses connections.

    With `short_watches`, a watch ends after the current events, otherwise at `end_watches`.
    If set, `token` is required in each request; requests for `forbidden` plurals get a 403. `ahead_seconds` is how
    far its clock is ahead of the local clock.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.store = Store()
        self.answers: list[Answer] = []
        self.requests: list[str] = []
        self.forbidden: set[str] = set()
        self.token = ""
        self.ahead_seconds = 0.0
        self.short_watches = False
        self.pages: dict[str, tuple[int, list[Json]]] = {}
        self.watching = 0
        self.ended = 0
        self.stopping = threading.Event()
        self._server = FakeHttpServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self._server.fake = self
        self._server.server_bind()
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_address[1]}"
        self._thread: threading.Thread | None = None

    def start(self) -> FakeApiServer:
        self._server.server_activate()
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        self.stopping.set()
        self.end_watches()
        if self._thread:
            self._server.shutdown()
            self._thread.join()
            self._server.hang_up()
        self._server.server_close()

    def end_watches(self) -> None:
        with self.store.changed:
            self.ended += 1
            self.store.changed.notify_all()

    def serve(self, group: str, versions: tuple[str, ...], kind: str, plural: str, *, namespaced: bool = True) -> None:
        self.store.serve(Resource(group, versions, kind, plural, namespaced))

    def asked(self, text: str) -> list[str]:
        return [request for request in self.requests if text in request]

    def kubeconfig(self, file: Path, **cluster: object) -> Path:
        """Write a kubeconfig with one context, `fake`; `cluster` adds to its cluster."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": self.url, **cluster}}],
            "users": [{"name": "tester", "user": {"token": self.token or "none"}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "tester"}}],
            "current-context": "fake",
        }
        file.write_text(json.dumps(config))
        return file


class FakeHttpServer(ThreadingHTTPServer):
    # server_close waits for every connection, so that no socket is left open.
    daemon_threads = False
    fake: FakeApiServer

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.connections: list[socket.socket] = []
        super().__init__(*arguments, **named)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.connections.append(connection)
        return connection, address

    def hang_up(self) -> None:
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: object) -> None:
        """Ignore errors, because tests disconnect clients on purpose."""
