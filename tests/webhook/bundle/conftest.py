"""A small OCI registry on a socket, with the faults that tests ask for."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class FakeRegistry:
    """What a registry has and was asked.

    Attributes:
        blobs: digest -> content.
        manifests: (repository, tag or digest) -> media type and content.
        answer: answers a request instead of the registry if it returns True.
        token: the bearer token that requests need; empty is none.
        requests: method, path and the header `Authorization` of each request.
    """

    port: int = 0
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[tuple[str, str], tuple[str, bytes]] = field(default_factory=dict)
    answer: Callable[[BaseHTTPRequestHandler], bool] | None = None
    token: str = ""
    requests: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def put(self, repository: str, tag: str, document: Any, media_type: str = "") -> str:
        """Store a manifest, and return its digest."""
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        kind = media_type or "application/vnd.oci.image.manifest.v1+json"
        self.manifests[repository, tag] = self.manifests[repository, digest] = (kind, data)
        return digest

    def put_blob(self, data: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.blobs[digest] = data
        return digest


class Handler(BaseHTTPRequestHandler):
    registry: FakeRegistry

    def log_message(self, *_: object) -> None: ...

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_request(self) -> None:
        registry, url = self.registry, urlsplit(self.path)
        authorization = self.headers.get("Authorization", "")
        registry.requests.append((self.command, self.path, authorization))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if registry.answer is not None and registry.answer(self):
            return
        if url.path == "/token":
            self.reply(200, json.dumps({"token": registry.token}).encode())
        elif registry.token and authorization != f"Bearer {registry.token}":
            challenge = f'Bearer realm="http://{registry.host}/token",service="s",scope="repository:a:pull,push"'
            self.reply(401, WWW_Authenticate=challenge)
        else:
            self._answer(url.path.removeprefix("/v2/"), parse_qs(url.query), body)

    def _answer(self, path: str, query: dict[str, list[str]], body: bytes) -> None:
        registry = self.registry
        repository, _, rest = path.rpartition("/")
        repository, _, sort = repository.rpartition("/")
        if path.endswith("/blobs/uploads/"):
            self.reply(202, Location=f"/v2/{repository.removesuffix('/blobs')}/blobs/uploads/1?state=x")
        elif sort == "uploads":
            registry.blobs[query["digest"][0]] = body
            self.reply(201)
        elif sort == "manifests" and self.command == "PUT":
            registry.put(repository, rest, body, self.headers.get("Content-Type", ""))
            self.reply(201)
        elif sort == "manifests" and (repository, rest) in registry.manifests:
            kind, data = registry.manifests[repository, rest]
            self.reply(200, data, Content_Type=kind)
        elif sort == "blobs" and rest in registry.blobs:
            self.reply(200, registry.blobs[rest])
        else:
            self.reply(404, b'{"errors": [{"code": "NAME_UNKNOWN", "message": "unknown"}]}')

    do_GET = do_PUT = do_POST = do_HEAD = handle_request  # noqa: N815 -- names of http.server


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    fake = FakeRegistry()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Handler,), {"registry": fake}))
    server.daemon_threads = True
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield fake
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No credentials and no proxy of the machine."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path_factory.mktemp("docker")))
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
