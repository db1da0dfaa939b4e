"""Counts what the webhook does, for Prometheus, over all its processes.

prometheus-client keeps the values of each process in files when the environment variable `PROMETHEUS_MULTIPROC_DIR` names
a directory before it is first imported, so set it before this module is imported. Without the variable, one process
counts for itself.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission import metric_table as table
from gpugate.webhook.admission.decisions import BROKE, decision, outcome_decisions
from gpugate.webhook.admission.front.events import FrontEvent
from gpugate.webhook.admission.judged_kinds import OTHER, UNREAD, judged_kinds, kind_of
from gpugate.webhook.admission.metric_files import forget
from gpugate.webhook.generate.drift_reasons import Reason

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Mapping

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.admission.gate import Observation

DIRECTORY_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
# From a review that no policy judges to the longest `timeoutSeconds` that makes sense.
_MILLISECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
_BUCKETS: Final = tuple(duration / 1000 for duration in _MILLISECONDS)
# By stance, which is a number; an enumeration's own words take longer to ask for.
_MODES: Final = tuple(stance.word for stance in Stance)
_CODES: Final = (400, 413, 422, 500, 504)


class _Children(dict[tuple[str, ...], Counter]):
    """The children of a counter by the values of its labels, each looked up in the library once."""

    def __init__(self, counter: Counter) -> None:
        super().__init__()
        self._metric = counter

    def __missing__(self, values: tuple[str, ...]) -> Counter:
        child = self[values] = self._metric.labels(*values)
        return child


class Metrics:
    """The metrics of one server; whatever the reviews say, the number of series is bounded.

    Made in the supervisor before it forks, and used in every process.
    """

    def __init__(self, catalog: Iterable[Policy]) -> None:
        """Make the metrics.

        Args:
            catalog: the policies and kinds that labels may name.

        Raises:
            RuntimeError: prometheus-client was imported before `PROMETHEUS_MULTIPROC_DIR` was set.
        """
        policies = tuple(catalog)
        self._policies = frozenset(policy.id for policy in policies)
        self._kinds = judged_kinds(policies)
        self._kind_names = frozenset(self._kinds.values())
        self._directory = os.environ.get(DIRECTORY_VARIABLE)
        self._registry = CollectorRegistry()
        durations = Histogram(
            table.DURATION.name, table.DURATION.help, table.DURATION.labels, registry=self._registry, buckets=_BUCKETS
        )
        self._durations = {phase: durations.labels(phase.value) for phase in (Phase.MUTATE, Phase.VALIDATE)}
        self._reviews = _Children(self._counter(table.REVIEWS))
        self._outcomes = _Children(self._counter(table.OUTCOMES))
        refusals = self._counter(table.REFUSALS)
        self._refusals = {code: refusals.labels(str(code)) for code in _CODES}
        self._other_refusals = refusals.labels(OTHER)
        events = self._counter(table.FRONT_EVENTS)
        self._events = {event: events.labels(event.value) for event in FrontEvent}
        self._log_dropped = self._counter(table.LOG_DROPPED)
        self._restarts = self._counter(table.RESTARTS)
        self._connections = self._gauge(table.CONNECTIONS)
        self._body_bytes = self._gauge(table.BODY_BYTES)
        self._gauges: dict[str, Gauge] = {}
        for policy in self._policies:
            # That a policy that denies broke is alerted on, and Prometheus sees no increase in a series that is new.
            self._outcomes[policy, BROKE, Stance.ENFORCE.word].inc(0)
        if self._directory and not any(Path(self._directory).glob("*.db")):
            raise RuntimeError(f"prometheus_client was imported before {DIRECTORY_VARIABLE} was set")

    def observe(self, observation: Observation) -> None:
        """Count a review and what each policy made of it."""
        phase, review, verdict, error = observation.phase, observation.review, observation.verdict, observation.error
        self._durations[phase].observe(observation.seconds)
        operation = review.request.operation.value if review else UNREAD
        self._reviews[phase.value, kind_of(observation, self._kinds), operation, decision(observation)].inc()
        if error is not None:
            self._refusals.get(error.code, self._other_refusals).inc()
        if verdict is None:
            return
        for outcome in verdict.outcomes:
            # Most policies pass.
            if outcome.findings or outcome.patches or outcome.skipped or outcome.error:
                policy = outcome.policy if outcome.policy in self._policies else OTHER
                for word in outcome_decisions(outcome, phase):
                    self._outcomes[policy, word, _MODES[outcome.stance]].inc()

    def front(self, event: FrontEvent) -> None:
        """Count what happened to a connection or a request before it was judged."""
        self._events[event].inc()

    def connections(self, open_: int) -> None:
        """Say how many connections this process has open."""
        self._connections.set(open_)

    def body_bytes(self, in_flight: int) -> None:
        """Say how many bytes of bodies this process holds."""
        self._body_bytes.set(in_flight)

    def reloaded(self, generation: str, ok: bool) -> None:  # noqa: FBT001 -- the outcome of a reload
        """Say which generation of the policy file is in force, and whether the last reload brought it."""
        self._set(table.CONFIG_HASH, _number(generation))
        self._set(table.CONFIG_GOOD, ok)
        if ok:
            self._set(table.CONFIG_TIME, time.time())

    def certificate(self, not_after: dt.datetime) -> None:
        """Say when the certificate in use ends."""
        self._set(table.CERTIFICATE_EXPIRY, not_after.timestamp())

    def certificate_reloaded(self, ok: bool) -> None:  # noqa: FBT001 -- the outcome of a reload
        """Say whether the last reload of the certificate succeeded."""
        self._set(table.CERTIFICATE_GOOD, ok)

    def certificates_kept(self, *, good: bool, leads: bool) -> None:
        """Say whether certificates are kept as they should be, and whether this replica writes the authorities."""
        self._set(table.CERTIFICATES_KEPT, good)
        self._set(table.LEADS, leads)

    def authority(self, not_after: dt.datetime) -> None:
        """Say when the authority that signs ends."""
        self._set(table.AUTHORITY_EXPIRY, not_after.timestamp())

    def bundle(self, configuration: str, trusted_until: float) -> None:
        """Say until when, in Unix time, a live webhook configuration vouches for the serving certificate."""
        self._set(table.BUNDLE_EXPIRY, trusted_until, configuration)

    def drift(self, found: Mapping[str, int]) -> None:
        """Say how many differences there are for each reason."""
        for reason in Reason:
            self._set(table.DRIFT, found.get(reason.value, 0), reason.value)

    def clock_skew(self, seconds: float) -> None:
        """Say how far the API server's clock is ahead of ours."""
        self._set(table.CLOCK_SKEW, seconds)

    def facts(self, kind: str, objects: int | None, *, served: bool = True) -> None:
        """Say how many objects of a kind are known, None when nothing is; `served`: whether the cluster has the kind."""
        label = kind if kind in self._kind_names else OTHER
        self._set(table.FACTS_AVAILABLE, objects is not None, label)
        self._set(table.FACTS_SERVED, served, label)
        self._set(table.FACTS_OBJECTS, objects or 0, label)

    def facts_age(self, kind: str, seconds: float) -> None:
        """Say how many seconds ago what is known of a kind was last up to date."""
        self._set(table.FACTS_AGE, seconds, kind if kind in self._kind_names else OTHER)

    def log_dropped(self, count: int) -> None:
        """Count log lines that were lost."""
        self._log_dropped.inc(count)

    def worker_restarted(self) -> None:
        """Count a worker that died and was replaced."""
        self._restarts.inc()

    def forget(self, pid: int) -> None:
        """Drop the gauges of a process that died; what it counted stays. Called by the supervisor."""
        if self._directory:
            forget(Path(self._directory), pid)

    def exposition(self, accept: str) -> tuple[str, bytes]:
        """Return content type and body of a scrape over all processes: OpenMetrics where the client accepts it."""
        registry = self._registry
        if self._directory:
            registry = CollectorRegistry()
            MultiProcessCollector(registry, self._directory)  # type: ignore[no-untyped-call] # the library has no types there
        encode: Callable[[CollectorRegistry], bytes]
        encode, content_type = choose_encoder(accept)
        try:
            return content_type, encode(registry)
        except FileNotFoundError:
            # A process died and was forgotten between the listing of the files and the reading.
            return content_type, encode(registry)

    def _counter(self, metric: table.Metric) -> Counter:
        return Counter(metric.name, metric.help, metric.labels, registry=self._registry)

    def _gauge(self, metric: table.Metric) -> Gauge:
        return Gauge(metric.name, metric.help, metric.labels, registry=self._registry, multiprocess_mode=metric.merge)

    def _set(self, metric: table.Metric, value: float, *labels: str) -> None:
        # Made on first use: a process that never sets it, as the supervisor, would bring a 0 into the minimum.
        gauge = self._gauges.get(metric.name)
        if gauge is None:
            gauge = self._gauges[metric.name] = self._gauge(metric)
        (gauge.labels(*labels) if labels else gauge).set(value)


def _number(generation: str) -> int:
    """Read a generation of hexadecimal digits; any other is 0."""
    try:
        return int(generation, 16)
    except ValueError:
        return 0
