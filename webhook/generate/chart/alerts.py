"""Alerts on the metrics of the webhook; `docs/metrics.md` says what each metric means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert.

    Attributes:
        name: what it is called.
        expression: when it fires.
        lasting: for how long that must last.
        severity: how grave it is.
        summary: what it means.
        kept: whether it is for certificates that the webhook keeps itself, or only for others; None for both.
    """

    name: str
    expression: str
    lasting: str
    severity: str
    summary: str
    kept: bool | None = None


ALERTS: Final = (
    Alert(
        "GpugatePolicyBroke",
        'sum by (policy) (increase(gpugate_policy_outcomes_total{decision="broke"}[15m])) > 0',
        "0m",
        "warning",
        "Policy {{ $labels.policy }} breaks on what it is shown: users may be denied for no fault of theirs.",
    ),
    Alert(
        "GpugateReviewsWithoutVerdict",
        'increase(gpugate_refused_reviews_total{code=~"5.."}[15m]) > 0',
        "0m",
        "warning",
        "Reviews end without a verdict.",
    ),
    Alert(
        "GpugateSlow",
        "histogram_quantile(0.99, sum by (le) (rate(gpugate_review_duration_seconds_bucket[5m]))) > 0.1",
        "10m",
        "warning",
        "One review of a hundred takes longer than 100 ms; the API server waits for each.",
    ),
    Alert(
        "GpugateShedsWork",
        'rate(gpugate_front_events_total{event=~"shed_.*"}[5m]) > 0',
        "5m",
        "warning",
        "Reviews are put off because there are too many: add replicas or workers.",
    ),
    Alert(
        "GpugateRefusesConnections",
        'rate(gpugate_front_events_total{event=~"refused_.*"}[5m]) > 0',
        "5m",
        "warning",
        "More connections are opened than are allowed.",
    ),
    Alert(
        "GpugatePolicyFileRefused",
        "gpugate_config_last_reload_successful == 0",
        "5m",
        "warning",
        "The policy file on disk is refused; the last good one is in force.",
    ),
    Alert(
        "GpugateReplicasDiffer",
        # Of each installation by itself: there may be two in what a Prometheus sees.
        'count by (namespace, job) (count_values by (namespace, job) ("hash", gpugate_config_hash)) > 1',
        "10m",
        "warning",
        "Replicas judge by different policy files.",
    ),
    Alert(
        "GpugateCertificateEnds",
        "gpugate_certificate_expiry_timestamp_seconds - time() < 2 * 3600",
        "0m",
        "critical",
        "The serving certificate ends within two hours; it should have been renewed six hours ago.",
        kept=True,
    ),
    Alert(
        "GpugateCertificatesNotKept",
        "gpugate_certificates_kept == 0",
        "15m",
        "critical",
        "Certificates are not kept as they should be; the log of {{ $labels.pod }} says why.",
        kept=True,
    ),
    Alert(
        "GpugateNotTrusted",
        "gpugate_webhook_ca_bundle_expiry_timestamp_seconds - time() < 7 * 86400",
        "5m",
        "critical",
        "The API server does not trust the serving certificate, or will not within a week ({{ $labels.configuration }}).",
        kept=True,
    ),
    Alert(
        "GpugateAuthorityEnds",
        "gpugate_certificate_authority_expiry_timestamp_seconds - time() < 20 * 86400",
        "0m",
        "warning",
        "The authority was not replaced in time.",
        kept=True,
    ),
    Alert(
        "GpugateLeaders",
        "sum by (namespace, job) (gpugate_certificates_leader) != 1",
        "5m",
        "warning",
        "No replica, or more than one, writes the authorities.",
        kept=True,
    ),
    Alert(
        "GpugateWebhookConfigurationDrift",
        "sum by (reason) (gpugate_webhook_config_drift) > 0",
        "15m",
        "warning",
        "Requests escape, or go elsewhere than generated: {{ $labels.reason }}. `gpugate doctor` says more.",
        kept=True,
    ),
    Alert(
        "GpugateClockSkew",
        "abs(gpugate_clock_skew_seconds) > 1800",
        "5m",
        "warning",
        "The clocks of gpugate and of the API server differ by more than certificates allow for.",
        kept=True,
    ),
    Alert(
        "GpugateCertificateEnds",
        "gpugate_certificate_expiry_timestamp_seconds - time() < 7 * 86400",
        "0m",
        "critical",
        "The serving certificate ends within a week.",
        kept=False,
    ),
    Alert(
        "GpugateCertificateRefused",
        "gpugate_certificate_last_reload_successful == 0",
        "5m",
        "critical",
        "A new serving certificate cannot be used; the old one is served until it ends.",
    ),
    Alert(
        "GpugateFactsUnknown",
        "gpugate_facts_available == 0 and gpugate_facts_served == 1",
        "10m",
        "warning",
        "Objects of kind {{ $labels.kind }} are not known: policies that need them skip.",
    ),
    Alert(
        "GpugateWorkersDie",
        "increase(gpugate_worker_restarts_total[15m]) > 2",
        "0m",
        "warning",
        "Workers die and are replaced; the log says why.",
    ),
    Alert(
        "GpugateLogLost",
        "increase(gpugate_log_lines_dropped_total[15m]) > 0",
        "0m",
        "warning",
        "Log lines are lost because standard error is not read fast enough.",
    ),
)
