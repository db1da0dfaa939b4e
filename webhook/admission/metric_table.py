"""Every metric of the webhook: name, labels, meaning, and how the values of several processes become one.

`docs/metrics.md` is checked against this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

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
