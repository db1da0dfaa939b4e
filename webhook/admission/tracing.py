"""One OpenTelemetry span per review. Import this module only for `--trace`, because it needs the extra `tracing`.

If tracing is on in the API server, it creates a span for each call of a webhook and sends its W3C trace context
(kubernetes.io, "Traces For Kubernetes System Components", v1.36). The span of the review is then a child of that span.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from gpugate.webhook.admission.decisions import DENY, ERROR, UNREAD, decision, denies, kind_of
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

    from gpugate.webhook.admission.decisions import Observation

_FLUSH_SECONDS: Final = 2.0


def otlp_provider() -> TracerProvider:
    """Return a provider that sends spans with OTLP over HTTP from a thread; the variables `OTEL_*` configure it.

    Call it after the last fork. Without `OTEL_EXPORTER_OTLP_ENDPOINT` spans go to http://localhost:4318.
    """
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "gpugate"}))
    # The library's shutdown at exit waits half a minute for an unreachable collector; `Tracer.close` limits the wait.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class Tracer:
    """Creates the span of a review after its response; spans contain no content of objects."""

    def __init__(self, provider: TracerProvider, kinds: Mapping[tuple[str, str], str]) -> None:
        """Create a tracer.

        Args:
            provider: receives the spans.
            kinds: group and kind -> name, for the kinds with a name of their own in spans.
        """
        self._provider = provider
        self._tracer = provider.get_tracer("gpugate")
        self._context = TraceContextTextMapPropagator()
        self._kinds = kinds
        self._observation: Observation | None = None
        self._ended = 0

    def observe(self, observation: Observation) -> None:
        """Store the result of a review for the next call of `span`."""
        self._observation = observation
        self._ended = time.time_ns()

    def span(self, traceparent: bytes = b"") -> None:
        """Create the span of the last observed review, if one was observed since the last call.

        Args:
            traceparent: the header of that name (W3C Trace Context), empty if it is missing; a malformed value is
                ignored.
        """
        observation, self._observation = self._observation, None
        if observation is None:
            return
        review_decision = decision(observation)
        span = self._tracer.start_span(
            f"admission {observation.phase.value}",
            self._context.extract({"traceparent": traceparent.decode("latin-1")}),
            SpanKind.SERVER,
            _attributes(observation, review_decision, kind_of(observation, self._kinds)),
            start_time=self._ended - round(observation.seconds * 1e9),
        )
        if review_decision == ERROR or (observation.error is not None and observation.error.code >= 500):
            span.set_status(Status(StatusCode.ERROR))
        span.end(self._ended)

    def close(self, seconds: float = _FLUSH_SECONDS) -> None:
        """Send the queued spans, for at most `seconds`."""
        # The library's shutdown waits for its thread and its exporter without a limit.
        shutdown = threading.Thread(target=self._provider.shutdown, name="trace shutdown", daemon=True)
        shutdown.start()
        shutdown.join(seconds)


def _attributes(observation: Observation, review_decision: str, kind: str) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "gpugate.phase": observation.phase.value,
        "gpugate.kind": kind,
        "gpugate.operation": observation.review.request.operation.value if observation.review else UNREAD,
        "gpugate.decision": review_decision,
        "gpugate.generation": observation.generation,
    }
    if review_decision == DENY and observation.verdict is not None:
        attributes["gpugate.deny"] = [o.policy for o in observation.verdict.outcomes if denies(o)]
    return attributes
