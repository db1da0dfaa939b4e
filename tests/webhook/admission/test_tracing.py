from __future__ import annotations

import http.server
import importlib
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.verdict import Finding, Outcome, Verdict
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.decisions import Observation
from gpugate.webhook.admission.options import ServeError
from gpugate.webhook.admission.review import Review, UnattributableError
from gpugate.webhook.admission.tracing import Tracer, otlp_provider

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE_SECONDS = 60
KINDS = {("", "Pod"): "Pod"}
POD = Request(
    GroupVersionKind("", "v1", "Pod"),
    Operation.CREATE,
    {"metadata": {"labels": {"token": "canary"}}},
    name="canary",
    namespace="canary",
    user="canary",
)
DENIED = Outcome("pods/x", Stance.ENFORCE, (Finding("pods/x", (), "canary", Stance.ENFORCE),))
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def evaluated(*outcomes: Outcome) -> Observation:
    return Observation(
        Phase.VALIDATE, 0.25, "3f2a", Review("canary", "admission.k8s.io/v1", POD), Verdict(POD, outcomes)
    )


class Spans:
    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = Tracer(provider, KINDS)

    def of(self, observation: Observation, traceparent: bytes = b"") -> ReadableSpan:
        self.tracer.observe(observation)
        self.tracer.span(traceparent)
        return self.finished()[-1]

    def finished(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()


@pytest.fixture
def spans() -> Spans:
    return Spans()


def test_span_of_a_review(spans: Spans) -> None:
    span = spans.of(evaluated(DENIED))
    assert (span.name, span.kind, span.status.status_code) == ("admission validate", SpanKind.SERVER, StatusCode.UNSET)
    assert dict(span.attributes or {}) == {
        "gpugate.phase": "validate",
        "gpugate.kind": "Pod",
        "gpugate.operation": "CREATE",
        "gpugate.decision": "deny",
        "gpugate.generation": "3f2a",
        "gpugate.deny": ("pods/x",),
    }


def test_it_lasts_as_long_as_the_review_took(spans: Spans) -> None:
    span = spans.of(evaluated())
    assert (span.end_time or 0) - (span.start_time or 0) == 250_000_000


def test_nothing_of_the_object(spans: Spans) -> None:
    assert "canary" not in spans.of(evaluated(DENIED)).to_json()


@pytest.mark.parametrize(
    ("code", "status"), [(400, StatusCode.UNSET), (500, StatusCode.ERROR), (504, StatusCode.ERROR)]
)
def test_an_internal_error_is_logged_as_an_error(spans: Spans, code: int, status: StatusCode) -> None:
    span = spans.of(Observation(Phase.MUTATE, 0.1, "3f2a", error=UnattributableError(code, "canary")))
    assert span.status.status_code is status
    assert dict(span.attributes or {})["gpugate.kind"] == "unread"


@pytest.mark.parametrize(
    ("traceparent", "parent"),
    [
        pytest.param(f"00-{TRACE}-{PARENT}-01".encode(), PARENT, id="of-the-API-server"),
        pytest.param(b"", None, id="none"),
        pytest.param(b"00-zz-\xff-01", None, id="malformed"),
    ],
)
def test_parent(spans: Spans, traceparent: bytes, parent: str | None) -> None:
    found = spans.of(evaluated(), traceparent).parent
    assert (format(found.span_id, "016x") if found else None) == parent


def test_spans_that_the_api_server_does_not_sample_are_not_sent(spans: Spans) -> None:
    spans.tracer.observe(evaluated())
    spans.tracer.span(f"00-{TRACE}-{PARENT}-00".encode())
    assert spans.finished() == ()


def test_one_span_for_each_observation(spans: Spans) -> None:
    spans.of(evaluated())
    spans.tracer.span()
    assert len(spans.finished()) == 1


class _Stuck(SpanExporter):
    def __init__(self) -> None:
        self.exporting, self.released = threading.Event(), threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002 -- the interface's
        self.exporting.set()
        self.released.wait(PATIENCE_SECONDS)
        return SpanExportResult.SUCCESS


def test_an_unreachable_collector_does_not_block() -> None:
    exporter = _Stuck()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=8, max_export_batch_size=4))
    tracer = Tracer(provider, KINDS)
    for _ in range(100):
        tracer.observe(evaluated())
        tracer.span()
    assert exporter.exporting.wait(PATIENCE_SECONDS)
    tracer.close(0.1)
    assert not exporter.released.is_set()
    # Nor does it keep the process alive.
    assert [thread.daemon for thread in threading.enumerate() if thread.name == "trace shutdown"] == [True]
    exporter.released.set()


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    received: list[tuple[str, bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("variables", "service"),
    [
        pytest.param({}, b"gpugate", id="our-name"),
        pytest.param({"OTEL_SERVICE_NAME": "admission-east"}, b"admission-east", id="the-users"),
    ],
)
def test_variables_configure_the_exporter(
    monkeypatch: pytest.MonkeyPatch,
    collector: tuple[str, list[tuple[str, bytes]]],
    variables: dict[str, str],
    service: bytes,
) -> None:
    url, received = collector
    for name, value in {"OTEL_EXPORTER_OTLP_ENDPOINT": url, **variables}.items():
        monkeypatch.setenv(name, value)
    tracer = Tracer(otlp_provider(), KINDS)
    tracer.observe(evaluated())
    tracer.span()
    tracer.close(PATIENCE_SECONDS)
    ((path, body),) = received
    assert path == "/v1/traces"
    assert service in body
    assert b"admission validate" in body


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    monkeypatch.delitem(sys.modules, "gpugate.webhook.admission.tracing")
    with pytest.raises(ServeError, match=r"not installed: install gpugate with its extra `tracing`"):
        importlib.import_module("gpugate.webhook.admission.tracing")
