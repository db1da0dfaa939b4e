from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.audit import prometheus
from gpugate.webhook.audit.prometheus import Budget, Login, QueryError, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TOKEN = "eyJhbGciOi.secret"  # noqa: S105 -- of this test
VECTOR = {
    "status": "success",
    "data": {"resultType": "vector", "result": [{"metric": {"UUID": "GPU-1"}, "value": [1.5, "0.25"]}]},
}


class Server:
    """Answers each request with `answer(handler)`; `requests` are (path, parameters, headers)."""

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler], None]) -> None:
        self.answer = answer
        self.requests: list[tuple[str, dict[str, list[str]], dict[str, str]]] = []
        self.url = ""


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[Server]:
    server = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            server.requests.append((parts.path, parse_qs(parts.query), dict(self.headers)))
            server.answer(self)

        def log_message(self, *_: object) -> None: ...

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    server.url = f"http://127.0.0.1:{listener.server_port}"
    try:
        yield server
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


def answering(
    body: Any, status: int = 200, kind: str = "application/json", **headers: str
) -> Callable[[BaseHTTPRequestHandler], None]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def failure(error: str, error_type: str = "execution") -> dict[str, str]:
    return {"status": "error", "errorType": error_type, "error": error}


def test_a_query_returns_labels_and_values() -> None:
    with serving(answering(VECTOR)) as server:
        (series,) = connect(f"{server.url}/prometheus/", Login(), 5).query('up{a="b c"}')

    assert (series.metric, series.value) == ({"UUID": "GPU-1"}, (1.5, "0.25"))
    path, parameters, headers = server.requests[0]
    assert path == "/prometheus/api/v1/query"
    assert parameters == {"query": ['up{a="b c"}'], "timeout": ["5s"], "dedup": ["true"]}
    assert "Authorization" not in headers


def test_an_answer_that_is_nested_very_deep_is_read() -> None:
    body = b'{"extension": ' + b"[" * 5_000 + b"]" * 5_000 + b"," + json.dumps(VECTOR).encode()[1:]
    with serving(answering(body)) as server:
        (series,) = connect(server.url, Login(), 5).query("up")

    assert series.value == (1.5, "0.25")


def test_credentials_and_tenant_are_headers(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "password").write_text("hunter2\n")
    with serving(answering(VECTOR)) as server:
        connect(server.url, Login(token_file=tmp_path / "token", tenant="ml"), 5).query("up")
        connect(server.url, Login(user="audit", password_file=tmp_path / "password"), 5).query("up")

    (_, _, first), (_, _, second) = server.requests
    assert first["Authorization"] == f"Bearer {TOKEN}"
    assert (first["X-Scope-OrgID"], first["THANOS-TENANT"]) == ("ml", "ml")
    assert second["Authorization"] == "Basic YXVkaXQ6aHVudGVyMg=="


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (answering(failure("too many samples", "execution"), 422), "the query is too expensive for the server"),
        (answering(failure("query timed out", "timeout"), 503), "the query is too expensive for the server"),
        (answering(b"Unauthorized", 401, "text/plain"), "401: the credentials are missing or not accepted"),
        (answering(failure("no org id", ""), 401), "the server requires a tenant: no org id"),
        (answering(b"no", 403, "text/plain"), "403: these credentials may not query"),
        (answering(b"404 page not found", 404, "text/plain"), "404: no query API at this address"),
        (answering(b"", 302, Location="https://login.example.com"), "302: the address redirects"),
        (answering(b"<!doctype html>", 200, "text/html"), "the answer is not from Prometheus' API (text/html)"),
        (answering(b"<html>", 502, "text/html"), "HTTP status 502"),
        (answering(failure("parse error", "bad_data"), 400), "400: the server does not accept the query"),
        (answering({"status": "success"}), "the answer is not from Prometheus' API"),
        (
            answering({"status": "success", "data": {"resultType": "matrix", "result": []}}),
            "the answer is not an instant vector",
        ),
        (
            answering({"status": "success", "data": {"resultType": "vector", "result": [{"value": 1}]}}),
            "the answer is not an instant vector",
        ),
        (answering(VECTOR, **{"Content-Length": "1000"}), "the connection ended within the answer"),
    ],
)
def test_each_fault_is_one_clear_line(answer: Callable[[BaseHTTPRequestHandler], None], message: str) -> None:
    with serving(answer) as server, pytest.raises(QueryError) as error:
        connect(server.url, Login(), 5).query("up")

    assert str(error.value).startswith(f"{server.url}: {message}")
    assert "\n" not in str(error.value)
    assert error.value.heavy == ("too expensive" in message)


def test_a_server_that_is_away_is_named() -> None:
    with serving(answering(VECTOR)) as server:
        pass
    with pytest.raises(QueryError, match="connection refused: check that the server is running") as error:
        connect(server.url, Login(), 5).query("up")
    assert error.value.fatal


def test_an_answer_without_end_is_given_up_in_time() -> None:
    over = threading.Event()

    def dribble(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not over.wait(0.01):
            try:
                handler.wfile.write(b" ")
            except OSError:
                return

    with serving(dribble) as server:
        started = time.monotonic()
        with pytest.raises(QueryError, match=r"no complete answer within 0\.3 s") as error:
            connect(server.url, Login(), 0.3).query("up")
        took = time.monotonic() - started
        over.set()
    assert error.value.heavy
    assert took < 5


def test_no_socket_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[socket.socket] = []
    create = socket.create_connection

    def connected(*arguments: Any, **options: Any) -> socket.socket:
        opened.append(create(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(socket, "create_connection", connected)
    monkeypatch.setattr(prometheus, "MAX_BYTES", 1 << 20)
    # The server speaks HTTP/1.0, so that the connection hands its socket over to the response.
    with serving(answering(b" " * (2 << 20))) as server, pytest.raises(QueryError) as error:
        connect(server.url, Login(), 5).query("up")

    # The error keeps the frames of the call, and with them the response.
    assert error.value.heavy
    assert [client.fileno() for client in opened] == [-1]


def test_a_huge_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MAX_BYTES", 1 << 20)
    with (
        serving(answering(b" " * (2 << 20))) as server,
        pytest.raises(QueryError, match="the answer is larger than 1 MiB"),
    ):
        connect(server.url, Login(), 5).query("up")


def test_a_server_that_repeats_the_token_does_not_make_it_visible(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    said = f"bad token {TOKEN}\x1b[31m\n::error::{TOKEN}"
    with serving(answering({**failure(said), "warnings": [said]}, 401)) as server:
        client = connect(server.url, Login(token_file=tmp_path / "token"), 5)
        with pytest.raises(QueryError) as error:
            client.query("up")
        server.answer = answering({**VECTOR, "warnings": [said, said]})
        client.query("up")

    assert TOKEN not in str(error.value) + "".join(client.warnings) + repr(client)
    assert "(hidden)" in str(error.value)
    assert "\x1b" not in str(error.value)
    assert len(client.warnings) == 1


@pytest.mark.parametrize(
    ("url", "login", "message"),
    [
        ("prometheus:9090", Login(), "invalid address"),
        ("ftp://a", Login(), "invalid address"),
        ("http://", Login(), "invalid address"),
        ("http://a:99999", Login(), "invalid address"),
        ("http://a b", Login(), "invalid address"),
        ("http://u:p@a", Login(), "remove user and password from the address"),
        ("http://a?token=x", Login(), "remove the part after"),
        ("http://a", Login(user="u"), "need each other"),
        ("http://a", Login(tenant="a\r\nX: y"), "write printable ASCII"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str, login: Login, message: str) -> None:
    with pytest.raises(GpugateError, match=message):
        connect(url, login, 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "empty"), ("a\nb", "more than one line"), ("ä", "other characters"), (None, "no such file")],
)
def test_a_token_file_that_cannot_be_used_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content)
    with pytest.raises(GpugateError, match=message) as error:
        connect("http://a", Login(token_file=tmp_path / "token"), 5)
    assert not content or content not in str(error.value)


def test_a_certificate_authority_file_is_checked(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not a certificate")
    with pytest.raises(GpugateError, match="not a PEM file of certificates"):
        connect("https://a", Login(ca=tmp_path / "ca.pem"), 5)


def test_a_server_without_tls_is_named() -> None:
    with serving(answering(VECTOR)) as server:
        url = server.url.replace("http:", "https:")
        with pytest.raises(QueryError, match="TLS failed: check that the port is an HTTPS port"):
            connect(url, Login(), 5).query("up")
    assert ssl.create_default_context().verify_mode is ssl.CERT_REQUIRED


def test_a_query_that_is_too_expensive_is_sent_in_parts() -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        (query,) = parse_qs(urlsplit(handler.path).query)["query"]
        whole = query == "x{}"
        (answering(failure("too many samples"), 422) if whole else answering(VECTOR))(handler)

    with serving(answer) as server:
        budget = Budget(connect(server.url, Login(), 5), 60)
        assert len(budget.ask(lambda part: f"x{{{part}}}", "UUID")) == 17
        assert len(budget.ask(lambda part: f"y{{{part}}}", "UUID")) == 17

    queries = [parameters["query"][0] for _, parameters, _ in server.requests]
    assert queries[:2] == ["x{}", 'x{UUID=~".*0"}']
    assert queries[17] == 'x{UUID!~".*[0-9a-f]"}'
    assert queries[18] == 'y{UUID=~".*0"}'


def test_a_useless_server_is_asked_once() -> None:
    with serving(answering(b"no", 401)) as server:
        budget = Budget(connect(server.url, Login(), 5), 60)
        messages = []
        for _ in range(3):
            with pytest.raises(QueryError) as error:
                budget.ask(lambda _: "up", "UUID")
            messages.append(str(error.value))

    assert len(server.requests) == 1
    assert len(set(messages)) == 1


def test_no_query_is_sent_after_the_time_for_all() -> None:
    now = iter([0.0, 1.0, 61.0])
    with serving(answering(VECTOR)) as server:
        budget = Budget(connect(server.url, Login(), 5), 60, lambda: next(now))
        budget.ask(lambda _: "up", "UUID")
        with pytest.raises(QueryError, match="the time for all queries is over"):
            budget.ask(lambda _: "up", "UUID")
    assert budget.sent == 1
