from __future__ import annotations

import asyncio
import datetime as dt
import json
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission import review
from gpugate.webhook.admission.app import create_app, unsupported
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.admission.front.load import Load, Turns
from gpugate.webhook.admission.gate import Answer, Gate, Rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask import Flask
    from flask.testing import FlaskClient

    from gpugate.policies.engine.evaluate import Phase


PLAIN = "http://localhost"


class KnownHealth:
    def __init__(self, *missing: str, document: bytes | None = None) -> None:
        self._missing = missing
        self._document = document

    def missing(self) -> tuple[str, ...]:
        return self._missing

    def exposition(self, accept: str) -> tuple[str, bytes]:
        return "text/plain; version=1.0.0", f"# for {accept}\n".encode()

    def shadowed(self) -> bytes | None:
        return self._document


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate(Rules(bind(CATALOG, PolicyConfig()), "g"), NoFacts(), lambda: dt.datetime(2026, 11, 21, tzinfo=dt.UTC))


def create(gate: Gate, *missing: str) -> Flask:
    app = create_app(gate, KnownHealth(*missing))
    # Reviews use TLS; probes and scrapes do not.
    app.config["PREFERRED_URL_SCHEME"] = "https"
    return app


@pytest.fixture(scope="module")
def app(gate: Gate) -> Flask:
    return create(gate)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_healthy(client: FlaskClient, path: str) -> None:
    answer = client.get(path, base_url=PLAIN)
    assert (answer.status_code, answer.data, answer.mimetype) == (200, b"ok\n", "text/plain")


def test_not_ready_lists_the_missing_parts(gate: Gate) -> None:
    client = create(gate, "worker 1: nodepools not listed", "shutting down").test_client()
    answer = client.get("/readyz", base_url=PLAIN)
    assert (answer.status_code, answer.text) == (
        503,
        "missing: worker 1: nodepools not listed\nmissing: shutting down\n",
    )


def test_metrics_are_in_the_format_that_is_accepted(client: FlaskClient) -> None:
    answer = client.get("/metrics", base_url=PLAIN, headers={"Accept": "application/openmetrics-text"})
    assert (answer.text, answer.content_type) == ("# for application/openmetrics-text\n", "text/plain; version=1.0.0")
    assert client.get("/metrics", base_url=PLAIN).text == "# for \n"


@pytest.mark.parametrize(
    ("document", "code", "body"),
    [(b'{"reviews": 1}', 200, {"reviews": 1}), (None, 404, "no shadow policy file")],
    ids=["a shadow policy file", "none"],
)
def test_what_a_shadow_policy_file_would_decide(gate: Gate, document: bytes | None, code: int, body: Any) -> None:
    answer = create_app(gate, KnownHealth(document=document)).test_client().get("/shadow", base_url=PLAIN)
    assert (answer.status_code, answer.mimetype) == (code, "application/json")
    assert json.loads(answer.data) == body if document else body in json.loads(answer.data)["message"]


@pytest.mark.parametrize(
    ("scheme", "path"),
    [
        ("https", "/healthz"),
        ("https", "/readyz"),
        ("https", "/metrics"),
        ("https", "/shadow"),
        ("http", "/mutate"),
        ("http", "/validate"),
    ],
)
def test_each_port_has_its_own_paths(client: FlaskClient, scheme: str, path: str) -> None:
    method = "POST" if scheme == "http" else "GET"
    assert client.open(path, method=method, base_url=f"{scheme}://localhost").status_code == 404


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_other_methods(client: FlaskClient, path: str, method: str) -> None:
    response = client.open(path, method=method)
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


def test_other_methods_of_health(client: FlaskClient) -> None:
    response = client.post("/healthz", base_url=PLAIN)
    assert (response.status_code, response.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path", ["/", "/validate/", "/mutate/", "/x/../validate", "/%2e%2e/validate", "/Validate", "/static/x"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_paths_match_exactly_and_are_never_redirected(client: FlaskClient, path: str, method: str) -> None:
    assert client.open(path, method=method).status_code == 404


def test_doubled_slash(client: FlaskClient) -> None:
    assert client.post("/", environ_overrides={"PATH_INFO": "//validate"}).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Content-Type": "text/plain"}, id="text"),
        pytest.param({"Content-Type": "application/yaml"}, id="yaml"),
        pytest.param({"Content-Type": "application/json; charset=latin1"}, id="latin-1"),
        pytest.param({"Content-Type": "application/json", "Content-Encoding": "gzip"}, id="gzip"),
    ],
)
def test_unsupported_media_type(client: FlaskClient, captured: Callable[[str], bytes], headers: dict[str, str]) -> None:
    response = client.post("/validate", data=captured("pod-delete.validate"), headers=headers)
    assert response.status_code == 415


@pytest.mark.parametrize("media_type", ["", "application/json", "Application/JSON; charset=UTF-8"])
def test_supported_media_type(client: FlaskClient, captured: Callable[[str], bytes], media_type: str) -> None:
    response = client.post("/validate", data=captured("pod-delete.validate"), headers={"Content-Type": media_type})
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("content_type", "encoding", "is_supported"),
    [
        ("", "", True),
        (" application/json ;charset=utf8", " Identity ", True),
        ('application/json; charset = " UTF-8 "', "", True),
        ("application/json; profile=latin1", "", True),
        ("application/json; charset", "", False),
        ("application/json;charset=latin1", "", False),
        ("application/json+patch", "", False),
        ("application/json", "br", False),
    ],
)
def test_only_json_in_utf_8_is_supported(content_type: str, encoding: str, *, is_supported: bool) -> None:
    assert (unsupported(content_type, encoding) == "") is is_supported


@pytest.mark.parametrize(
    ("method", "path", "code", "message"),
    [
        ("GET", "/nowhere", 404, "GET /nowhere: not found"),
        ("GET", "/validate", 405, "GET /validate: method not allowed"),
        ("POST", "/validate", 400, ""),
    ],
    ids=["not-found", "method", "no-body"],
)
def test_errors_are_status_objects(client: FlaskClient, method: str, path: str, code: int, message: str) -> None:
    response = client.open(path, method=method)
    found = json.loads(response.data)
    assert (response.mimetype, response.status_code, found["code"]) == ("application/json", code, code)
    assert message in found["message"]


def test_environment_cannot_enable_the_debugger(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASK_DEBUG", "1")
    assert create(gate).debug is False


class _Broken(Gate):
    def __init__(self) -> None:
        pass

    def answer(self, *_: object) -> NoReturn:
        raise KeyError("canary")


def test_an_internal_error_has_no_traceback(captured: Callable[[str], bytes]) -> None:
    response = create(_Broken()).test_client().post("/validate", data=captured("pod-delete.validate"))
    assert (response.status_code, b"canary" in response.data) == (500, False)
    assert (response.mimetype, json.loads(response.data)["code"]) == ("application/json", 500)


class _Asked(Gate):
    """Records how long a review may take, and which reviews are too large, by the content that was read."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def answer(self, phase: Phase, body: bytes, seconds: float) -> Answer:  # type: ignore[override] # what the application passes
        self.asked.append((phase.value, seconds))
        return Answer(200, b"%d" % len(body))

    def too_large(self, phase: Phase, head: bytes) -> Answer:
        self.asked.append((phase.value, len(head)))
        return Answer(413, b"")


@pytest.mark.parametrize(("query", "seconds"), [("?timeout=1s", 0.8), ("", 8.0)])
def test_a_review_has_most_of_the_time_that_the_api_server_waits(query: str, seconds: float) -> None:
    gate = _Asked()
    assert create(gate).test_client().post(f"/mutate{query}", data=b"{}").data == b"2"
    assert gate.asked == [("mutate", pytest.approx(seconds))]


@pytest.mark.parametrize(("size", "code"), [(100, 200), (101, 413)])
def test_the_largest_body(monkeypatch: pytest.MonkeyPatch, size: int, code: int) -> None:
    monkeypatch.setattr("gpugate.webhook.admission.app.MAX_BODY", 100)
    monkeypatch.setattr("gpugate.webhook.admission.app.HEAD", 10)
    gate = _Asked()
    assert create(gate).test_client().post("/validate", data=b"x" * size).status_code == code
    # Of a body that is too large, only the head is read.
    assert gate.asked == [("validate", 10 if code == 413 else pytest.approx(8.0))]


def test_body_larger_than_its_content_length(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "MAX_BODY", 100)
    monkeypatch.setattr("gpugate.webhook.admission.app.MAX_BODY", 100)
    head = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",'
    response = client.post("/validate", data=head.ljust(200), headers={"Content-Type": "application/json"})
    assert (response.status_code, response.get_json()["response"]["status"]["code"]) == (200, 413)


def through_the_fast_path(gate: Gate, app: Flask, path: str, body: bytes) -> tuple[int, bytes, bytes]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "state": {},
        "query_string": b"timeout=10s",
        "headers": [(b"content-type", b"application/json")],
    }

    async def answer() -> None:
        load = Load(Limits())
        turns = Turns(asyncio.get_running_loop(), load)
        await AdmissionAsgi(gate, app, load, turns, lambda _: None)(scope, receive, send)

    asyncio.run(answer())
    start, end = sent
    return start["status"], dict(start["headers"])[b"content-type"], end["body"]


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    "name",
    [
        "pod-create-gpu-untolerated.mutate",
        "ec2nodeclass-create.mutate",
        "pod-exec-connect.mutate",
        "nodepool-delete.validate",
        "",
    ],
)
def test_flask_and_the_fast_path_give_the_same_bytes(
    gate: Gate, app: Flask, captured: Callable[[str], bytes], path: str, name: str
) -> None:
    body = captured(name) if name else b"{"
    response = app.test_client().post(path, data=body, headers={"Content-Type": "application/json"})
    flask = response.status_code, response.headers["Content-Type"].encode(), response.data
    assert through_the_fast_path(gate, app, path, body) == flask
