"""Prometheus metrics of the webhook, added up over all its processes.

prometheus-client stores the values of each process in files if the environment variable `PROMETHEUS_MULTIPROC_DIR` names
a directory when it is first imported, so set it before this module is imported. Without the variable, one process counts
for itself. `docs/metrics.md` is checked against the table of metrics here.
"""

from __future__ import annotations

import os
import shutil
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission.decisions import BROKE, OTHER, UNREAD, decision, judged_kinds, kind_of, outcome_decisions
from gpugate.webhook.admission.front.limits import FrontEvent
from gpugate.webhook.generate.drift_reasons import Reason

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Mapping

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.admission.gate import Observation

# How prometheus-client makes one value of a gauge in several processes; "live" ones forget processes that died.
Merge: TypeAlias = Literal["livesum", "livemin", "livemax", "livemostrecent"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as Prometheus shows it; `merge` is for gauges."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    merge: Merge = "livesum"


REVIEWS: Final = Metric(
    "gpugate_reviews_total",
    "counter",
    "AdmissionReviews answered, by what became of them.",
    ("phase", "kind", "operation", "decision"),
)
DURATION: Final = Metric(
    "gpugate_review_duration_seconds", "histogram", "Time from the whole body to the answer.", ("phase",)
)
REFUSALS: Final = Metric(
    "gpugate_refused_reviews_total",
    "counter",
    "Reviews that could not be judged, by code: 4xx are the sender's fault, 500 a bug, 504 out of time.",
    ("code",),
)
OUTCOMES: Final = Metric(
    "gpugate_policy_outcomes_total",
    "counter",
    "What each policy decided, other than to pass; mode is that of the policy in the namespace.",
    ("policy", "decision", "mode"),
)
FRONT_EVENTS: Final = Metric(
    "gpugate_front_events_total",
    "counter",
    "Connections and requests accepted, refused, shed or timed out before they were judged.",
    ("event",),
)
# Each worker holds its own.
CONNECTIONS: Final = Metric("gpugate_connections", "gauge", "Open connections to the admission port.")
BODY_BYTES: Final = Metric("gpugate_body_bytes", "gauge", "Bytes of request bodies held in memory.")
# Workers take up a file within a second of each other; when they differ for longer, the next gauge says so.
CONFIG_HASH: Final = Metric(
    "gpugate_config_hash",
    "gauge",
    "Generation of the policy file in force, read as a hexadecimal number; 0 for the shipped modes.",
    merge="livemostrecent",
)
# One worker that failed is a failure.
CONFIG_GOOD: Final = Metric(
    "gpugate_config_last_reload_successful",
    "gauge",
    "Whether the last reload of the policy file succeeded; at 0 the last good one stays in force.",
    merge="livemin",
)
# The worker that is furthest behind.
CONFIG_TIME: Final = Metric(
    "gpugate_config_last_reload_success_timestamp_seconds",
    "gauge",
    "When the policy file was last taken up by every worker, in Unix time.",
    merge="livemin",
)
# What a client may meet: the certificate that ends first.
CERTIFICATE_EXPIRY: Final = Metric(
    "gpugate_certificate_expiry_timestamp_seconds",
    "gauge",
    "When the serving certificate ends, in Unix time.",
    merge="livemin",
)
CERTIFICATE_GOOD: Final = Metric(
    "gpugate_certificate_last_reload_successful",
    "gauge",
    "Whether the last reload of the serving certificate succeeded; at 0 the last good one stays in use.",
    merge="livemin",
)
# One process keeps the certificates.
CERTIFICATES_KEPT: Final = Metric(
    "gpugate_certificates_kept",
    "gauge",
    "Whether certificates are kept as they should be: authorities stored and published, a certificate that is trusted.",
    merge="livemostrecent",
)
LEADS: Final = Metric(
    "gpugate_certificates_leader",
    "gauge",
    "Whether this replica is the one that writes the authorities.",
    merge="livemostrecent",
)
AUTHORITY_EXPIRY: Final = Metric(
    "gpugate_certificate_authority_expiry_timestamp_seconds",
    "gauge",
    "When the authority that signs serving certificates ends, in Unix time.",
    merge="livemostrecent",
)
BUNDLE_EXPIRY: Final = Metric(
    "gpugate_webhook_ca_bundle_expiry_timestamp_seconds",
    "gauge",
    "Until when every caBundle of the live configuration vouches for the serving certificate, in Unix time; 0: it does not.",
    ("configuration",),
    merge="livemostrecent",
)
DRIFT: Final = Metric(
    "gpugate_webhook_config_drift",
    "gauge",
    "Differences between the live webhook configurations and what the rules in force need, by reason.",
    ("reason",),
    merge="livemostrecent",
)
CLOCK_SKEW: Final = Metric(
    "gpugate_clock_skew_seconds",
    "gauge",
    "The API server's clock minus ours, to about a second.",
    merge="livemostrecent",
)
# One worker that does not know makes its answers incomplete.
FACTS_AVAILABLE: Final = Metric(
    "gpugate_facts_available",
    "gauge",
    "Whether the objects of a kind are known; at 0 policies that need them skip.",
    ("kind",),
    merge="livemin",
)
# A cluster without KEDA has no ScaledObjects, which is nothing to be alerted of.
FACTS_SERVED: Final = Metric(
    "gpugate_facts_served",
    "gauge",
    "Whether the cluster has a kind at all; at 0 there is nothing to know of it.",
    ("kind",),
    merge="livemin",
)
# Every worker watches the whole cluster, so a sum would count each object several times.
FACTS_OBJECTS: Final = Metric(
    "gpugate_facts_objects", "gauge", "Objects of a kind that are known.", ("kind",), merge="livemostrecent"
)
# The worker that is furthest behind.
FACTS_AGE: Final = Metric(
    "gpugate_facts_age_seconds",
    "gauge",
    "Seconds since the objects of a kind were last known to be up to date; 0 while they are watched.",
    ("kind",),
    merge="livemax",
)
LOG_DROPPED: Final = Metric(
    "gpugate_log_lines_dropped_total", "counter", "Log lines lost because standard error was not read fast enough."
)
RESTARTS: Final = Metric("gpugate_worker_restarts_total", "counter", "Workers that died and were replaced.")

METRICS: Final = (
    REVIEWS,
    DURATION,
    REFUSALS,
    OUTCOMES,
    FRONT_EVENTS,
    CONNECTIONS,
    BODY_BYTES,
    CONFIG_HASH,
    CONFIG_GOOD,
    CONFIG_TIME,
    CERTIFICATE_EXPIRY,
    CERTIFICATE_GOOD,
    CERTIFICATES_KEPT,
    LEADS,
    AUTHORITY_EXPIRY,
    BUNDLE_EXPIRY,
    DRIFT,
    CLOCK_SKEW,
    FACTS_AVAILABLE,
    FACTS_SERVED,
    FACTS_OBJECTS,
    FACTS_AGE,
    LOG_DROPPED,
    RESTARTS,
)


_COUNTED: Final = ("counter", "histogram")


def forget(directory: Path, pid: int) -> None:
    """Keep what a dead process counted with what others before it did, and drop its gauges; for the supervisor only.

    A scrape that reads in the same instant may find a file gone.
    """
    mark_process_dead(pid, str(directory))  # type: ignore[no-untyped-call] # the library has no types there
    for kind in _COUNTED:
        file = directory / f"{kind}_{pid}.db"
        if file.exists():
            _add(file, directory / f"{kind}_dead.db")


def _add(file: Path, total: Path) -> None:
    # Not yet a name that a scrape looks for.
    draft = total.with_suffix(".draft")
    if total.exists():
        shutil.copyfile(total, draft)
    values = MmapedDict(str(draft))  # type: ignore[no-untyped-call] # as above
    try:
        for key, value, _, _ in MmapedDict.read_all_values_from_file(str(file)):  # type: ignore[no-untyped-call] # as above
            values.write_value(key, values.read_value(key)[0] + value, 0.0)  # type: ignore[no-untyped-call] # as above
    except struct.error:
        # The process was killed while it made the file, before it counted anything.
        pass
    finally:
        values.close()  # type: ignore[no-untyped-call] # as above
    draft.replace(total)
    file.unlink()


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
        durations = Histogram(DURATION.name, DURATION.help, DURATION.labels, registry=self._registry, buckets=_BUCKETS)
        self._durations = {phase: durations.labels(phase.value) for phase in (Phase.MUTATE, Phase.VALIDATE)}
        self._reviews = _Children(self._counter(REVIEWS))
        self._outcomes = _Children(self._counter(OUTCOMES))
        refusals = self._counter(REFUSALS)
        self._refusals = {code: refusals.labels(str(code)) for code in _CODES}
        self._other_refusals = refusals.labels(OTHER)
        events = self._counter(FRONT_EVENTS)
        self._events = {event: events.labels(event.value) for event in FrontEvent}
        self._log_dropped = self._counter(LOG_DROPPED)
        self._restarts = self._counter(RESTARTS)
        self._connections = self._gauge(CONNECTIONS)
        self._body_bytes = self._gauge(BODY_BYTES)
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
        self._set(CONFIG_HASH, _number(generation))
        self._set(CONFIG_GOOD, ok)
        if ok:
            self._set(CONFIG_TIME, time.time())

    def certificate(self, not_after: dt.datetime) -> None:
        """Say when the certificate in use ends."""
        self._set(CERTIFICATE_EXPIRY, not_after.timestamp())

    def certificate_reloaded(self, ok: bool) -> None:  # noqa: FBT001 -- the outcome of a reload
        """Say whether the last reload of the certificate succeeded."""
        self._set(CERTIFICATE_GOOD, ok)

    def certificates_kept(self, *, good: bool, leads: bool) -> None:
        """Say whether certificates are kept as they should be, and whether this replica writes the authorities."""
        self._set(CERTIFICATES_KEPT, good)
        self._set(LEADS, leads)

    def authority(self, not_after: dt.datetime) -> None:
        """Say when the authority that signs ends."""
        self._set(AUTHORITY_EXPIRY, not_after.timestamp())

    def bundle(self, configuration: str, trusted_until: float) -> None:
        """Say until when, in Unix time, a live webhook configuration vouches for the serving certificate."""
        self._set(BUNDLE_EXPIRY, trusted_until, configuration)

    def drift(self, found: Mapping[str, int]) -> None:
        """Say how many differences there are for each reason."""
        for reason in Reason:
            self._set(DRIFT, found.get(reason.value, 0), reason.value)

    def clock_skew(self, seconds: float) -> None:
        """Say how far the API server's clock is ahead of ours."""
        self._set(CLOCK_SKEW, seconds)

    def facts(self, kind: str, objects: int | None, *, served: bool = True) -> None:
        """Say how many objects of a kind are known, None when nothing is; `served`: whether the cluster has the kind."""
        label = kind if kind in self._kind_names else OTHER
        self._set(FACTS_AVAILABLE, objects is not None, label)
        self._set(FACTS_SERVED, served, label)
        self._set(FACTS_OBJECTS, objects or 0, label)

    def facts_age(self, kind: str, seconds: float) -> None:
        """Say how many seconds ago what is known of a kind was last up to date."""
        self._set(FACTS_AGE, seconds, kind if kind in self._kind_names else OTHER)

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

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.help, metric.labels, registry=self._registry)

    def _gauge(self, metric: Metric) -> Gauge:
        return Gauge(metric.name, metric.help, metric.labels, registry=self._registry, multiprocess_mode=metric.merge)

    def _set(self, metric: Metric, value: float, *labels: str) -> None:
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
