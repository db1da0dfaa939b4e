"""Requests of any kind through the ASGI application, with a gate and a WSGI application that record their calls."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from wsgiref.validate import validator

import pytest

from gpugate.policies.engine.evaluate import Phase
from gpugate.webhook.admission.asgi import AdmissionAsgi, call
from gpugate.webhook.admission.front.handover import Response
from gpugate.webhook.admission.front.limits import FrontEvent, Limits
from gpugate.webhook.admission.front.load import Load
from gpugate.webhook.admission.gate import Answer, Later
from gpugate.webhook.admission.review import HEAD, MAX_BODY

Wsgi: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
KIB = 1024
ANSWER = Answer(200, b'{"kind":"AdmissionReview"}')
TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def page(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    """Answer a request that is not a review."""
    start("404 NOT FOUND", [("Content-Type", "text/plain"), ("X-Path", environ["PATH_INFO"])])
    return [b"a ", b"page"]


@dataclass
class Worker:
    """The application of a worker, whose gate gives `answers` and whose other process gives `handed`."""

    answers: list[Answer | Later] = field(default_factory=lambda: [ANSWER])
    limits: Limits = field(default_factory=Limits)
    handed: list[Response | None] | None = None
    wsgi: Wsgi = page
    seconds: float = 100.0

    def __post_init__(self) -> None:
        self.load = Load(self.limits)
        self.calls: list[tuple[Any, ...]] = []
        self.sends: list[tuple[Any, ...]] = []
        self.events: list[FrontEvent] = []
        self.spans: list[bytes] = []
        self.turns = 0
        self.unread: list[bytes] = []

    # The gate.

    def try_answer(
        self, phase: Phase, body: bytes, seconds_left: float, *, may_wait: bool, only_quick: bool
    ) -> Answer | Later:
        self.calls.append((phase, body, round(seconds_left, 3), may_wait, only_quick, gc.isenabled()))
        return self.answers.pop(0)

    def too_large(self, phase: Phase, head: bytes) -> Answer:
        self.calls.append((phase, head))
        return self.answers.pop(0)  # type: ignore[return-value] # the tests give an answer

    # The process for expensive reviews.

    async def send(self, target: str, traceparent: bytes, body: bytes, seconds: float) -> Response | None:
        assert self.handed is not None
        self.sends.append((target, traceparent, body, round(seconds, 3), self.load.waiting))
        return self.handed.pop(0)

    # The order of requests.

    def now(self) -> float:
        return self.seconds

    async def take(self) -> None:
        self.turns += 1

    def request(self, *parts: bytes, **scope: Any) -> list[dict[str, Any]]:
        """Return the messages that a request is answered with; the client is gone after the parts of a body."""
        return asyncio.run(self._request(list(parts), scope))

    async def _request(self, parts: list[bytes], scope: dict[str, Any]) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        complete = scope.pop("complete", True)
        self.unread = parts

        async def receive() -> dict[str, Any]:
            if not parts:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts) or not complete}

        async def send(message: Any) -> None:
            sent.append(message)

        path = scope.get("path", "/validate")
        usual = {
            "type": "http",
            "method": "POST",
            "scheme": "https",
            "path": path,
            "raw_path": path.encode(),
            "http_version": "1.1",
            "query_string": b"timeout=10s",
            "headers": [],
            "state": {},
            "client": ("10.0.0.1", 1),
        }
        hand_over: Any = None if self.handed is None else self
        fake: Any = self
        application = AdmissionAsgi(
            fake, cast("Any", self.wsgi), self.load, fake, self.events.append, self.spans.append, hand_over=hand_over
        )
        await application({**usual, **scope}, receive, send)
        return sent


def read(sent: list[dict[str, Any]]) -> tuple[int, dict[str, str], bytes]:
    start, *bodies = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, b"".join(message["body"] for message in bodies)


@pytest.mark.parametrize(
    ("path", "query", "waited", "expected"),
    [
        ("/mutate", b"timeout=10s", 0.0, (Phase.MUTATE, 8.0, True)),
        ("/validate", b"timeout=5s", 0.25, (Phase.VALIDATE, 3.75, True)),
        ("/validate", b"", 0.5, (Phase.VALIDATE, 7.5, True)),
        # Too little time is left to wait for cluster data.
        ("/mutate", b"timeout=500ms", 0.0, (Phase.MUTATE, 0.4, False)),
    ],
)
def test_a_review_is_evaluated_within_its_time(
    path: str, query: bytes, waited: float, expected: tuple[Phase, float, bool]
) -> None:
    worker = Worker()
    sent = worker.request(b"re", b"view", path=path, query_string=query, state={"complete": 100.0 - waited})
    ((phase, body, seconds, may_wait, only_quick, _),) = worker.calls
    assert ((phase, seconds, may_wait), body, only_quick) == (expected, b"review", False)
    headers = {"content-type": "application/json", "content-length": str(len(ANSWER.body))}
    assert read(sent) == (200, headers, ANSWER.body)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert (worker.turns, worker.load.mean < Load(Limits()).mean) == (1, True)


def test_the_span_of_a_review_has_its_parent() -> None:
    worker = Worker([ANSWER, ANSWER])
    worker.request(b"review", headers=[(b"traceparent", TRACE)])
    worker.request(b"review")
    assert worker.spans == [TRACE, b""]


@pytest.mark.parametrize("size", [100, 64 * KIB, 64 * KIB + 1, 200 * KIB], ids=str)
def test_garbage_is_not_collected_during_a_large_review(size: int) -> None:
    worker = Worker()
    worker.request(b"x" * size)
    assert (worker.calls[0][-1], gc.isenabled()) == (size <= 64 * KIB, True)


@pytest.mark.parametrize("sizes", [(100,), (40 * KIB, 40 * KIB), (64 * KIB, 1, 1)], ids=str)
def test_each_body_is_freed_once(sizes: tuple[int, ...]) -> None:
    worker = Worker()
    worker.request(*(b"x" * size for size in sizes))
    assert (worker.calls[0][1], worker.load._uncollected) == (b"x" * sum(sizes), sum(sizes))
    assert worker.load.bodies.bytes == 0


@pytest.mark.parametrize("parts", [(), (b"re",), (b"x" * 70 * KIB,)], ids=["nothing", "a part", "a large part"])
def test_a_client_that_leaves_gets_nothing_and_frees_its_body(parts: tuple[bytes, ...]) -> None:
    worker = Worker()
    assert (worker.request(*parts, complete=False), worker.calls) == ([], [])
    assert (worker.load.bodies.bytes, worker.load._uncollected in {0, 70 * KIB}) == (0, True)


def status(sent: list[dict[str, Any]]) -> tuple[int, str, dict[str, str]]:
    code, headers, body = read(sent)
    error = json.loads(body)
    assert (error["kind"], error["code"], headers.pop("content-type")) == ("Status", code, "application/json")
    assert int(headers.pop("content-length")) == len(body)
    return code, error["message"], headers


@pytest.mark.parametrize("header", [(b"content-type", b"text/plain"), (b"content-encoding", b"gzip")], ids=str)
def test_a_media_type_that_is_not_supported(header: tuple[bytes, bytes]) -> None:
    worker = Worker()
    sent = worker.request(b"x" * 10, b"re", b"st", headers=[header])
    code, _, headers = status(sent)
    assert (code, headers, worker.calls, worker.unread) == (415, {"connection": "close"}, [], [])
    # The rest of the body is read before the response ends, so that the client reads the response.
    assert [(message["body"] == b"", message.get("more_body", False)) for message in sent[1:]] == [
        (False, True),
        (True, False),
    ]


def test_of_an_unneeded_body_a_limited_part_is_read() -> None:
    worker = Worker()
    mebibyte = b"x" * KIB * KIB
    sent = worker.request(mebibyte, *[mebibyte] * 70, headers=[(b"content-type", b"text/plain")])
    assert (status(sent)[0], len(worker.unread)) == (415, 70 - 64)


def test_a_client_that_leaves_during_the_rest_gets_no_end() -> None:
    sent = Worker().request(b"x", b"y", complete=False, headers=[(b"content-type", b"text/plain")])
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


def test_of_a_body_that_is_too_large_only_the_head_is_evaluated() -> None:
    worker = Worker()
    parts = (b"a" * 300, b"b" * 300, b"c" * 300)
    sent = worker.request(*parts, headers=[(b"content-length", b"%d" % (MAX_BODY + 1))])
    assert worker.calls == [(Phase.VALIDATE, (b"a" * 300 + b"b" * 300)[:HEAD])]
    assert [message.get("more_body", False) for message in sent[1:]] == [True, False]
    assert read(sent)[0] == 200


def test_a_body_of_the_largest_size_is_evaluated() -> None:
    worker = Worker()
    worker.request(b"review", headers=[(b"content-length", b"%d" % MAX_BODY)])
    assert worker.calls[0][1] == b"review"


@pytest.mark.parametrize(
    ("state", "shed"),
    [
        ({}, False),
        ({"full": False, "complete": 99.0}, False),
        ({"full": True}, True),
        ({"complete": 98.9}, True),
    ],
    ids=["no state", "not late", "full", "late"],
)
def test_an_overloaded_worker_asks_for_a_retry(state: dict[str, Any], shed: bool) -> None:  # noqa: FBT001 -- a table's column
    worker = Worker(limits=Limits(waiting=1))
    sent = worker.request(b"review", state=state)
    assert (worker.events, worker.calls == []) == ([FrontEvent.SHED_WORK] * shed, shed)
    if shed:
        # The client should use the connection again.
        assert status(sent) == (429, "gpugate is overloaded: retry the request", {"retry-after": "1"})


def test_probes_are_answered_by_an_overloaded_worker() -> None:
    worker = Worker()
    sent = worker.request(path="/readyz", method="GET", scheme="http", state={"full": True, "complete": 0.0})
    assert sent == []
    sent = worker.request(b"", path="/readyz", method="GET", scheme="http", state={"full": True, "complete": 0.0})
    assert (read(sent)[2], worker.events, worker.turns) == (b"a page", [], 0)


def test_a_body_above_the_memory_limit_is_not_read() -> None:
    worker = Worker(limits=Limits(in_flight=100 * KIB))
    sent = worker.request(b"x" * 90 * KIB, b"x" * 11 * KIB, b"rest")
    assert (status(sent)[0], worker.events) == (429, [FrontEvent.SHED_BYTES])
    assert worker.load.bodies.bytes == 0


@pytest.mark.parametrize(
    ("request_", "code", "body"),
    [
        ({"path": "/readyz", "method": "GET", "scheme": "http"}, 404, b"a page"),
        ({"path": "/validate", "method": "GET"}, 404, b"a page"),
        ({"path": "/validate", "scheme": "http"}, 404, b"a page"),
        ({"path": "/validate/"}, 404, b"a page"),
    ],
    ids=["health", "another method", "without TLS", "another path"],
)
def test_other_requests_go_to_the_wsgi_application(request_: dict[str, Any], code: int, body: bytes) -> None:
    worker = Worker()
    sent = worker.request(b"", **request_)
    headers = {"content-type": "text/plain", "x-path": request_["path"], "connection": "close"}
    assert (read(sent), worker.calls) == ((code, headers, body), [])


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"raw_path": b"/%76alidate"}, (404, "POST: not found", {"connection": "close"})),
        (
            {"path": "/other", "headers": [(b"content-length", b"%d" % (MAX_BODY + 1))]},
            (413, "the body is too large", {"connection": "close"}),
        ),
    ],
    ids=["another spelling", "too large"],
)
def test_requests_that_no_application_gets(request_: dict[str, Any], expected: tuple[int, str, dict[str, str]]) -> None:
    worker = Worker(wsgi=cast("Wsgi", None))
    assert (status(worker.request(b"x", b"rest", **request_)), worker.calls) == (expected, [])


LARGE = b"x" * 256 * KIB
OTHER = Response(200, b"{}")


def test_a_large_review_is_handed_over_without_an_attempt() -> None:
    worker = Worker(handed=[OTHER])
    worker.load.waiting = 1
    sent = worker.request(LARGE, path="/mutate", state={"complete": 99.0}, headers=[(b"traceparent", TRACE)])
    # 7 of 8 seconds remain, which the other process computes from a longer timeout. Meanwhile it is no queued work.
    assert worker.sends == [("/mutate?timeout=8750ms", TRACE, LARGE, 7.0, 0)]
    assert read(sent) == (200, {"content-type": "application/json", "content-length": "2"}, b"{}")
    assert (worker.calls, worker.spans, worker.load.waiting) == ([], [], 1)


@pytest.mark.parametrize("size", [100, 256 * KIB - 1], ids=str)
def test_a_smaller_review_is_handed_over_if_it_takes_long(size: int) -> None:
    worker = Worker([Later.CPU, ANSWER], handed=[OTHER])
    assert read(worker.request(b"x" * size))[2] == b"{}"
    assert read(worker.request(b"x" * size))[2] == ANSWER.body
    assert [only_quick for *_, only_quick, _ in worker.calls] == [True, True]
    assert [len(body) for _, _, body, _, _ in worker.sends] == [size]


def test_a_review_that_cannot_be_handed_over_is_evaluated_here() -> None:
    worker = Worker(handed=[None])
    assert read(worker.request(LARGE))[2] == ANSWER.body
    ((_, body, _, _, only_quick, _),) = worker.calls
    assert (body, only_quick, worker.load.waiting) == (LARGE, False, 0)


def test_a_busy_process_for_expensive_reviews_asks_for_a_retry() -> None:
    worker = Worker(handed=[Response(429, b"")])
    assert status(worker.request(LARGE))[::2] == (429, {"retry-after": "1"})


def test_only_reviews_are_handed_over() -> None:
    worker = Worker(handed=[])
    assert read(worker.request(b"", path="/readyz", method="GET", scheme="http"))[2] == b"a page"


# PEP 3333, as Flask reads it.
SCOPE: dict[str, Any] = {
    "method": "GET",
    "scheme": "http",
    "path": "/m\xe9trics",
    "query_string": b"a=\xe9",
    "http_version": "1.0",
    "server": ("10.0.0.9", 8081),
}
HEADERS = {b"content-type": b"text/plain", b"content-length": b"7", b"accept": b"*/*", b"x-a-b": b"\xe9"}


def test_the_environment_of_a_request() -> None:
    found: dict[str, Any] = {}

    def record(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        found.update(environ)
        start("200 OK", [("Content-Type", "text/plain"), ("X-A", "\xe9")])
        return [b"a", b"b"]

    assert call(cast("Any", validator(cast("Any", record))), SCOPE, HEADERS) == (
        200,
        [(b"content-type", b"text/plain"), (b"x-a", b"\xe9")],
        b"ab",
    )
    found.pop("wsgi.errors").write("")
    assert found.pop("wsgi.input").read(1) == b""
    assert found == {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/m\xc3\xa9trics",
        "QUERY_STRING": "a=\xe9",
        "SERVER_NAME": "10.0.0.9",
        "SERVER_PORT": "8081",
        "SERVER_PROTOCOL": "HTTP/1.0",
        "CONTENT_TYPE": "text/plain",
        # The body is not passed on.
        "CONTENT_LENGTH": "0",
        "HTTP_ACCEPT": "*/*",
        "HTTP_X_A_B": "\xe9",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }


def test_the_socket_of_another_process_has_no_address() -> None:
    found: dict[str, Any] = {}
    call(cast("Any", lambda environ, _: found.update(environ) or []), {**SCOPE, "server": None}, {})
    assert (found["SERVER_NAME"], found["SERVER_PORT"], found["CONTENT_TYPE"]) == ("localhost", "0", "")


class Closing(list[bytes]):
    """A body that records whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("broken", [False, True])
def test_the_body_of_a_response_is_closed(broken: bool) -> None:  # noqa: FBT001 -- a table's column
    body = Closing([b"a", cast("bytes", None)] if broken else [b"a"])
    try:
        # Without a status, the response is an error of the server.
        assert call(cast("Any", lambda *_: body), SCOPE, {}) == (500, [], b"a")
    except TypeError:
        assert broken
    assert body.closed


def test_write_is_not_supported() -> None:
    def writes(_: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        start("200 OK", [])(b"a")
        return []

    with pytest.raises(RuntimeError, match="unsupported"):
        call(cast("Any", writes), SCOPE, {})
