"""Prometheus metrics of the webhook, summed over all its processes.

prometheus-client stores the values of each process in files if the environment variable `PROMETHEUS_MULTIPROC_DIR` names
a directory when it is first imported, so set it before this module is imported. Without the variable, the metrics are
those of one process. A test compares `docs/metrics.md` with the table of metrics here.
"""

from __future__ import annotations

import math
import os
import shutil
import struct
import threading
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
from gpugate.webhook.admission.decisions import (
    ERROR,
    MALFORMED,
    OTHER,
    UNREAD,
    decision,
    evaluated_kinds,
    kind_of,
    kind_of_request,
    outcome_decisions,
)
from gpugate.webhook.admission.front.limits import FrontEvent
from gpugate.webhook.registration.drift_reasons import Reason

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Mapping

    from gpugate.policies.sdk.objects import Request
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.admission.decisions import Observation
    from gpugate.webhook.admission.shadow_table import Pair

# How prometheus-client combines the values of a gauge from several processes; "live" modes ignore dead processes.
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
    "Answered AdmissionReviews, by decision.",
    ("phase", "kind", "operation", "decision"),
)
DURATION: Final = Metric(
    "gpugate_review_duration_seconds",
    "histogram",
    "Seconds from the complete request body to the response.",
    ("phase",),
)
FAILED_REVIEWS: Final = Metric(
    "gpugate_failed_reviews_total",
    "counter",
    "Reviews that could not be evaluated, by HTTP code: 4xx invalid request, 500 bug in gpugate, 504 time limit exceeded.",
    ("code",),
)
OUTCOMES: Final = Metric(
    "gpugate_policy_outcomes_total",
    "counter",
    "Decisions of each policy except allow; mode is the mode of the policy in the namespace.",
    ("policy", "decision", "mode"),
)
SHADOW_REVIEWS: Final = Metric(
    "gpugate_shadow_reviews_total",
    "counter",
    "Answered reviews for the shadow policy file, by result: evaluated, dropped under load, late or failed.",
    ("result",),
)
SHADOW_OUTCOMES: Final = Metric(
    "gpugate_shadow_outcomes_total",
    "counter",
    "Decisions of a policy by the policy file in force (from) and by the shadow policy file (to), unless both allow.",
    ("policy", "kind", "operation", "from", "to"),
)
RECORD_REVIEWS: Final = Metric(
    "gpugate_record_reviews_total",
    "counter",
    "Answered reviews for the record, by result: recorded, repeated (counted on an equal one), dropped under load, or failed.",
    ("result",),
)
FRONT_EVENTS: Final = Metric(
    "gpugate_server_events_total",
    "counter",
    "Connections and requests that were accepted, refused, shed or timed out before evaluation.",
    ("event",),
)
# Each worker counts its own connections.
CONNECTIONS: Final = Metric("gpugate_connections", "gauge", "Open connections to the admission port.")
BODY_BYTES: Final = Metric("gpugate_body_bytes", "gauge", "Bytes of request bodies in memory.")
BUILD_INFO: Final = Metric(
    "gpugate_build_info", "gauge", "The version of gpugate; always 1.", ("version",), merge="livemostrecent"
)
# Workers reload the file within a second of each other. If they differ for longer, the next gauge shows it.
CONFIG_HASH: Final = Metric(
    "gpugate_config_hash",
    "gauge",
    "Generation of the policy file in use, a hexadecimal number; 0 for the shipped modes.",
    merge="livemostrecent",
)
# The minimum shows a failure in any worker.
CONFIG_GOOD: Final = Metric(
    "gpugate_config_last_reload_successful",
    "gauge",
    "Whether the last reload of the policy file succeeded; if 0, the last valid file stays in use.",
    merge="livemin",
)
# The minimum shows the worker that is furthest behind.
CONFIG_TIME: Final = Metric(
    "gpugate_config_last_reload_success_timestamp_seconds",
    "gauge",
    "Unix time of the last successful reload of the policy file; the oldest of all workers.",
    merge="livemin",
)
SHADOW_CONFIG_GOOD: Final = Metric(
    "gpugate_shadow_config_last_reload_successful",
    "gauge",
    "Whether the last reload of the shadow policy file succeeded; if 0, the last valid one stays in use, if any.",
    merge="livemin",
)
# The minimum shows the first expiry that a client can meet.
CERTIFICATE_EXPIRY: Final = Metric(
    "gpugate_certificate_expiry_timestamp_seconds",
    "gauge",
    "Unix time when the serving certificate expires.",
    merge="livemin",
)
CERTIFICATE_GOOD: Final = Metric(
    "gpugate_certificate_last_reload_successful",
    "gauge",
    "Whether the last reload of the serving certificate succeeded; if 0, the last valid one stays in use.",
    merge="livemin",
)
# Only the keeper sets this gauge and the next ones.
MANAGEMENT_HEALTHY: Final = Metric(
    "gpugate_certificate_management_healthy",
    "gauge",
    "Whether gpugate manages the certificates successfully: CAs are stored and published, the serving certificate is trusted.",
    merge="livemostrecent",
)
LEADS: Final = Metric(
    "gpugate_certificate_leader",
    "gauge",
    "Whether this replica is the leader, which writes the CAs.",
    merge="livemostrecent",
)
AUTHORITY_EXPIRY: Final = Metric(
    "gpugate_certificate_authority_expiry_timestamp_seconds",
    "gauge",
    "Unix time when the CA that signs serving certificates expires.",
    merge="livemostrecent",
)
BUNDLE_EXPIRY: Final = Metric(
    "gpugate_webhook_ca_bundle_expiry_timestamp_seconds",
    "gauge",
    "Unix time until which every caBundle of the live configuration trusts the serving certificate; 0 if one does not.",
    ("configuration",),
    merge="livemostrecent",
)
DRIFT: Final = Metric(
    "gpugate_webhook_config_drift",
    "gauge",
    "Differences between the live and the generated webhook configurations, by reason.",
    ("reason",),
    merge="livemostrecent",
)
CLOCK_SKEW: Final = Metric(
    "gpugate_clock_skew_seconds",
    "gauge",
    "Clock of the API server minus the local clock, accurate to about a second.",
    merge="livemostrecent",
)
# The minimum shows missing data in any worker, whose policies then are not evaluated.
CLUSTER_DATA_AVAILABLE: Final = Metric(
    "gpugate_cluster_data_available",
    "gauge",
    "Whether the cluster data of a kind is available; if 0, policies that need it are not evaluated.",
    ("kind",),
    merge="livemin",
)
# Missing ScaledObjects in a cluster without KEDA need no alert.
CLUSTER_DATA_SERVED: Final = Metric(
    "gpugate_cluster_data_served",
    "gauge",
    "Whether the cluster serves a kind; if 0, it has no objects of the kind.",
    ("kind",),
    merge="livemin",
)
# Every worker watches all objects, so a sum would count each object several times.
CLUSTER_DATA_OBJECTS: Final = Metric(
    "gpugate_cluster_data_objects", "gauge", "Watched objects of a kind.", ("kind",), merge="livemostrecent"
)
# The maximum shows the worker that is furthest behind.
CLUSTER_DATA_AGE: Final = Metric(
    "gpugate_cluster_data_age_seconds",
    "gauge",
    "Seconds since the cluster data of a kind was last up to date; 0 while the kind is watched.",
    ("kind",),
    merge="livemax",
)
LOG_DROPPED: Final = Metric(
    "gpugate_log_lines_dropped_total", "counter", "Log lines lost because standard error was not read fast enough."
)
RESTARTS: Final = Metric(
    "gpugate_worker_restarts_total", "counter", "Workers that terminated unexpectedly and were replaced."
)
POLICY_OFF: Final = Metric(
    "gpugate_policy_switched_off",
    "gauge",
    "Whether a policy outside the library is switched off after repeated failures; if 1, it is not evaluated.",
    ("policy",),
    merge="livemostrecent",
)

METRICS: Final = (
    REVIEWS,
    DURATION,
    FAILED_REVIEWS,
    OUTCOMES,
    SHADOW_REVIEWS,
    SHADOW_OUTCOMES,
    RECORD_REVIEWS,
    FRONT_EVENTS,
    CONNECTIONS,
    BODY_BYTES,
    BUILD_INFO,
    CONFIG_HASH,
    CONFIG_GOOD,
    CONFIG_TIME,
    SHADOW_CONFIG_GOOD,
    CERTIFICATE_EXPIRY,
    CERTIFICATE_GOOD,
    MANAGEMENT_HEALTHY,
    LEADS,
    AUTHORITY_EXPIRY,
    BUNDLE_EXPIRY,
    DRIFT,
    CLOCK_SKEW,
    CLUSTER_DATA_AVAILABLE,
    CLUSTER_DATA_SERVED,
    CLUSTER_DATA_OBJECTS,
    CLUSTER_DATA_AGE,
    LOG_DROPPED,
    RESTARTS,
    POLICY_OFF,
)


_COUNTED: Final = ("counter", "histogram")


def forget(directory: Path, pid: int) -> None:
    """Add the counters of a dead process to those of earlier dead processes, and delete its gauges.

    Only the supervisor calls it. A concurrent scrape may find a file missing.
    """
    mark_process_dead(pid, str(directory))  # type: ignore[no-untyped-call] # the library has no types there
    for kind in _COUNTED:
        file = directory / f"{kind}_{pid}.db"
        if file.exists():
            _add(file, directory / f"{kind}_dead.db")


def _add(file: Path, total: Path) -> None:
    # A scrape does not read files with this suffix.
    draft = total.with_suffix(".draft")
    if total.exists():
        shutil.copyfile(total, draft)
    values = MmapedDict(str(draft))  # type: ignore[no-untyped-call] # as above
    try:
        for key, value, _, _ in MmapedDict.read_all_values_from_file(str(file)):  # type: ignore[no-untyped-call] # as above
            values.write_value(key, values.read_value(key)[0] + value, 0.0)  # type: ignore[no-untyped-call] # as above
    except struct.error:
        # The process was killed while it created the file, before it counted anything.
        pass
    finally:
        values.close()  # type: ignore[no-untyped-call] # as above
    draft.replace(total)
    file.unlink()


DIRECTORY_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
# From a review that no policy evaluates to the default `timeoutSeconds` of Kubernetes.
_MILLISECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
_BUCKETS: Final = tuple(duration / 1000 for duration in _MILLISECONDS)
# Indexed by the mode, which is a number; the property of the enumeration is slower.
_MODES: Final = tuple(mode.word for mode in Stance)
_CODES: Final = (400, 413, 422, 500, 504)


class _Children(dict[tuple[str, ...], Counter]):
    """The children of a counter by label values; each child is looked up in the library only once."""

    def __init__(self, counter: Counter) -> None:
        super().__init__()
        self._metric = counter

    def __missing__(self, values: tuple[str, ...]) -> Counter:
        child = self[values] = self._metric.labels(*values)
        return child


class Metrics:
    """The metrics of one server; the number of series is bounded for any reviews.

    The supervisor creates them before it forks, and every process uses them.
    """

    def __init__(self, catalog: Iterable[Policy]) -> None:
        """Create the metrics.

        Args:
            catalog: the policies and kinds that labels may contain.

        Raises:
            RuntimeError: prometheus-client was imported before `PROMETHEUS_MULTIPROC_DIR` was set.
        """
        self.know(catalog)
        self._directory = os.environ.get(DIRECTORY_VARIABLE)
        self._registry = CollectorRegistry()
        durations = Histogram(DURATION.name, DURATION.help, DURATION.labels, registry=self._registry, buckets=_BUCKETS)
        self._durations = {phase: durations.labels(phase.value) for phase in (Phase.MUTATE, Phase.VALIDATE)}
        self._reviews = _Children(self._counter(REVIEWS))
        self._outcomes = _Children(self._counter(OUTCOMES))
        self._shadow_reviews = _Children(self._counter(SHADOW_REVIEWS))
        self._shadow_outcomes = _Children(self._counter(SHADOW_OUTCOMES))
        self._record_reviews = _Children(self._counter(RECORD_REVIEWS))
        failed = self._counter(FAILED_REVIEWS)
        self._failed = {code: failed.labels(str(code)) for code in _CODES}
        self._other_failed = failed.labels(OTHER)
        events = self._counter(FRONT_EVENTS)
        self._events = {event: events.labels(event.value) for event in FrontEvent}
        self._log_dropped = self._counter(LOG_DROPPED)
        self._restarts = self._counter(RESTARTS)
        self._connections = self._gauge(CONNECTIONS)
        self._body_bytes = self._gauge(BODY_BYTES)
        self._gauges: dict[str, Gauge] = {}
        self._creation = threading.Lock()
        # Those without labels of which the smallest value of all processes counts.
        self._minima: list[Gauge] = []
        for policy in self._policies:
            # Users alert on errors in enforced policies, and Prometheus sees no increase in a new series.
            self._outcomes[policy, ERROR, Stance.ENFORCE.word].inc(0)
        if self._directory and not any(Path(self._directory).glob("*.db")):
            raise RuntimeError(f"prometheus_client was imported before {DIRECTORY_VARIABLE} was set")

    def know(self, catalog: Iterable[Policy]) -> None:
        """Set the policies and kinds that labels may contain."""
        policies = tuple(catalog)
        self._policies = frozenset(policy.id for policy in policies)
        self._kinds = evaluated_kinds(policies)
        self._kind_names = frozenset(self._kinds.values())

    def switched(self, policy: str, *, off: bool) -> None:
        """Set whether a policy is switched off after repeated failures."""
        self._set(POLICY_OFF, off, policy)

    def leave_to_others(self) -> None:
        """Leave the minima that the supervisor has set to the other processes; for a process that does not set them.

        It has a 0 for each gauge that was created before the fork.
        """
        for gauge in self._minima:
            gauge.set(math.inf)

    def observe(self, observation: Observation) -> None:
        """Count a review and the decisions of each policy on it."""
        phase, review, verdict, error = observation.phase, observation.review, observation.verdict, observation.error
        self._durations[phase].observe(observation.seconds)
        operation = review.request.operation.value if review else UNREAD
        self._reviews[phase.value, kind_of(observation, self._kinds), operation, decision(observation)].inc()
        if error is not None:
            self._failed.get(error.code, self._other_failed).inc()
        if verdict is None:
            return
        for outcome in verdict.outcomes:
            # Most policies pass and count nothing.
            if outcome.findings or outcome.patches or outcome.skipped or outcome.error:
                policy = outcome.policy if outcome.policy in self._policies else OTHER
                for word in outcome_decisions(outcome, phase):
                    self._outcomes[policy, word, _MODES[outcome.stance]].inc()

    def shadow_result(self, result: str) -> None:
        """Count an answered review for the shadow policy file."""
        self._shadow_reviews[(result,)].inc()

    def record_result(self, result: str, reviews: int) -> None:
        """Count answered reviews for the record."""
        self._record_reviews[(result,)].inc(reviews)

    def shadow_pair(self, request: Request, pair: Pair) -> None:
        """Count the decisions of a policy on a request by both policy files."""
        policy = pair.policy if pair.policy in self._policies or pair.policy == MALFORMED else OTHER
        kind = kind_of_request(request, self._kinds)
        self._shadow_outcomes[policy, kind, request.operation.value, pair.current, pair.candidate].inc()

    def shadow_reloaded(self, *, ok: bool) -> None:
        """Set whether the last reload of the shadow policy file succeeded."""
        self._set(SHADOW_CONFIG_GOOD, ok)

    def front(self, event: FrontEvent) -> None:
        """Count an event of a connection or a request before its evaluation."""
        self._events[event].inc()

    def connections(self, open_: int) -> None:
        """Set the number of open connections of this process."""
        self._connections.set(open_)

    def body_bytes(self, in_flight: int) -> None:
        """Set the number of bytes of request bodies in this process."""
        self._body_bytes.set(in_flight)

    def built(self, version: str) -> None:
        """Set the version of this program."""
        self._set(BUILD_INFO, 1, version)

    def reloaded(self, generation: str, ok: bool) -> None:  # noqa: FBT001 -- the outcome of a reload
        """Set the generation of the policy file in force, and whether the last reload succeeded."""
        self._set(CONFIG_HASH, _number(generation))
        self._set(CONFIG_GOOD, ok)
        if ok:
            self._set(CONFIG_TIME, time.time())

    def certificate(self, not_after: dt.datetime) -> None:
        """Set the expiry of the certificate in use."""
        self._set(CERTIFICATE_EXPIRY, not_after.timestamp())

    def certificate_reloaded(self, ok: bool) -> None:  # noqa: FBT001 -- the outcome of a reload
        """Set whether the last reload of the certificate succeeded."""
        self._set(CERTIFICATE_GOOD, ok)

    def certificate_management(self, *, good: bool, leads: bool) -> None:
        """Set whether the certificates and authorities are in order, and whether this replica is the leader."""
        self._set(MANAGEMENT_HEALTHY, good)
        self._set(LEADS, leads)

    def authority(self, not_after: dt.datetime) -> None:
        """Set the expiry of the active certificate authority."""
        self._set(AUTHORITY_EXPIRY, not_after.timestamp())

    def bundle(self, configuration: str, trusted_until: float) -> None:
        """Set until when, in Unix time, a live webhook configuration trusts the serving certificate."""
        self._set(BUNDLE_EXPIRY, trusted_until, configuration)

    def drift(self, differences: Mapping[str, int]) -> None:
        """Set the number of differences for each reason."""
        for reason in Reason:
            self._set(DRIFT, differences.get(reason.value, 0), reason.value)

    def clock_skew(self, seconds: float) -> None:
        """Set the API server's clock minus the local clock."""
        self._set(CLOCK_SKEW, seconds)

    def facts(self, kind: str, objects: int | None, *, served: bool = True) -> None:
        """Set the number of watched objects of a kind, None if unavailable; `served`: whether the cluster has the kind."""
        label = kind if kind in self._kind_names else OTHER
        self._set(CLUSTER_DATA_AVAILABLE, objects is not None, label)
        self._set(CLUSTER_DATA_SERVED, served, label)
        self._set(CLUSTER_DATA_OBJECTS, objects or 0, label)

    def facts_age(self, kind: str, seconds: float) -> None:
        """Set the seconds since the cluster data of a kind was last up to date."""
        self._set(CLUSTER_DATA_AGE, seconds, kind if kind in self._kind_names else OTHER)

    def log_dropped(self, count: int) -> None:
        """Count dropped log lines."""
        self._log_dropped.inc(count)

    def worker_restarted(self) -> None:
        """Count a worker that died and was replaced."""
        self._restarts.inc()

    def forget(self, pid: int) -> None:
        """Delete the gauges of a dead process and keep its counters; only the supervisor calls it."""
        if self._directory:
            forget(Path(self._directory), pid)

    def exposition(self, accept: str) -> tuple[str, bytes]:
        """Return content type and body of a scrape of all processes, in OpenMetrics if the client accepts it."""
        registry = self._registry
        if self._directory:
            registry = CollectorRegistry()
            MultiProcessCollector(registry, self._directory)  # type: ignore[no-untyped-call] # the library has no types there
        encode: Callable[[CollectorRegistry], bytes]
        encode, content_type = choose_encoder(accept)
        try:
            return content_type, encode(registry)
        except FileNotFoundError:
            # The supervisor deleted the file of a dead process after the files were listed.
            return content_type, encode(registry)

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.help, metric.labels, registry=self._registry)

    def _gauge(self, metric: Metric) -> Gauge:
        return Gauge(metric.name, metric.help, metric.labels, registry=self._registry, multiprocess_mode=metric.merge)

    def _set(self, metric: Metric, value: float, *labels: str) -> None:
        # Created on first use, because a process that never sets the gauge would add a 0 to the minimum.
        gauge = self._gauges.get(metric.name)
        if gauge is None:
            # Each kind is watched by a thread of its own, and a second gauge of one name is an error.
            with self._creation:
                gauge = self._gauges.get(metric.name)
                if gauge is None:
                    gauge = self._gauges[metric.name] = self._gauge(metric)
                    if metric.merge == "livemin" and not metric.labels:
                        self._minima.append(gauge)
        (gauge.labels(*labels) if labels else gauge).set(value)


def _number(generation: str) -> int:
    """Return a hexadecimal generation as a number; 0 for any other text."""
    try:
        return int(generation, 16)
    except ValueError:
        return 0
