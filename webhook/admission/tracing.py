"""One span per review, for OpenTelemetry; needs the extra `tracing`, so import it only where traces are wanted.

The API server makes a span for each call of a webhook and sends its W3C trace context along, when its own tracing is on
(kubernetes.io, "Traces For Kubernetes System Components", v1.36); a span here is then the child of that one.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from gpugate.webhook.admission.decisions import BROKE, DENIED, UNREAD, decision, denies, kind_of
from gpugate.webhook.admission.options import ServeError

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as error:
    raise ServeError(
        f"--trace: {error.name} is not installed: install gpugate with its extra `tracing`: `pip install '.[tracing]'` in its checkout"
    ) from None

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.util.types import AttributeValue

    from gpugate.webhook.admission.gate import Observation

_FLUSH_SECONDS: Final = 2.0


def otlp_provider() -> TracerProvider:
    """Return a provider that sends spans by OTLP over HTTP from a thread; the variables `OTEL_*` say where and how.

    Call it after the last fork. Without `OTEL_EXPORTER_OTLP_ENDPOINT` spans go to http://localhost:4318.
    """
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "gpugate"}))
    # At exit it would wait half a minute for a collector that is down; `Tracer.close` does not.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class Tracer:
    """Makes spans of reviews after the fact; nothing of an object is in them."""

    def __init__(self, provider: TracerProvider, kinds: Mapping[tuple[str, str], str]) -> None:
        """Make a tracer.

        Args:
            provider: where spans go.
            kinds: group and kind -> name, for the kinds that are told apart.
        """
        self._provider = provider
        self._tracer = provider.get_tracer("gpugate")
        self._context = TraceContextTextMapPropagator()
        self._kinds = kinds
        self._observation: Observation | None = None
        self._ended = 0

    def observe(self, observation: Observation) -> None:
        """Keep what became of a review until `span` makes a span of it."""
        self._observation = observation
        self._ended = time.time_ns()

    def span(self, traceparent: bytes = b"") -> None:
        """Make the span of the review that was observed last, if there is one since the last call.

        Args:
            traceparent: the header of that name (W3C Trace Context), empty when there is none; a malformed one is
                ignored.
        """
        observation, self._observation = self._observation, None
        if observation is None:
            return
        decided = decision(observation)
        span = self._tracer.start_span(
            f"admission {observation.phase.value}",
            self._context.extract({"traceparent": traceparent.decode("latin-1")}),
            SpanKind.SERVER,
            _attributes(observation, decided, kind_of(observation, self._kinds)),
            start_time=self._ended - round(observation.seconds * 1e9),
        )
        if decided == BROKE or (observation.error is not None and observation.error.code >= 500):
            span.set_status(Status(StatusCode.ERROR))
        span.end(self._ended)

    def close(self, seconds: float = _FLUSH_SECONDS) -> None:
        """Send the spans that wait, for at most so many seconds."""
        # The library's own shutdown waits for its thread, and for the exporter, as long as they take.
        shutdown = threading.Thread(target=self._provider.shutdown, name="trace shutdown", daemon=True)
        shutdown.start()
        shutdown.join(seconds)


def _attributes(observation: Observation, decided: str, kind: str) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "gpugate.phase": observation.phase.value,
        "gpugate.kind": kind,
        "gpugate.operation": observation.review.request.operation.value if observation.review else UNREAD,
        "gpugate.decision": decided,
        "gpugate.generation": observation.generation,
    }
    if decided == DENIED and observation.verdict is not None:
        attributes["gpugate.denied"] = [o.policy for o in observation.verdict.outcomes if denies(o)]
    return attributes
