"""Derive the status of an installation from its objects and from the metrics of the API server.

The metrics are those of `k8s.io/apiserver` pkg/admission/metrics/metrics.go, v0.36.3; durations are stable, counts alpha.
"""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.certs.pki import split, validity
from gpugate.policies.engine.clusters import EVERYWHERE
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.manifests.policy_file import PolicyFileError, parse_policy_file
from gpugate.webhook.operate.doctor_case import mounted_policy, used_bundle
from gpugate.webhook.operate.installation import MUTATING, Unread
from gpugate.webhook.operate.status_report import Authority, Counters, Entry, Status
from gpugate.webhook.registration import break_glass

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Installation, Object

_PREFIX: Final = "apiserver_admission_webhook_"
_BUCKETS: Final = f"{_PREFIX}admission_duration_seconds_bucket"
_COUNT: Final = f"{_PREFIX}admission_duration_seconds_count"
_REJECTIONS: Final = f"{_PREFIX}rejection_count"
_FAILED_OPEN: Final = f"{_PREFIX}fail_open_count"
_BY_THE_WEBHOOK: Final = "no_error"


@dataclass(slots=True)
class _Tally:
    calls: float = 0
    denied: float = 0
    failed: float = 0
    buckets: dict[float, float] = field(default_factory=lambda: defaultdict(float))

    def counters(self) -> Counters:
        within = [bound for bound, count in sorted(self.buckets.items()) if self.calls and count >= 0.99 * self.calls]
        slowest = within[0] if within and within[0] != float("inf") else None
        return Counters(int(self.calls), int(self.denied), int(self.failed), slowest)


def read_counters(connection: Connection) -> Mapping[str, Counters] | None:
    """Return the name of each called webhook entry -> its counters; None if the metrics cannot be read.

    Reading needs the permission for the nonResourceURL `/metrics`, which administrators have.
    """
    try:
        text = connection.read("/metrics", {}).decode()
    except (CallError, UnicodeDecodeError):
        return None
    return parse_counters(text)


def parse_counters(text: str) -> Mapping[str, Counters]:
    """Parse the counters from the Prometheus text format."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 -- only a status needs it

    # Filter first, because an API server exposes tens of thousands of other lines.
    own_lines = "\n".join(line for line in text.splitlines() if line.startswith(_PREFIX))
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    for family in text_string_to_metric_families(f"{own_lines}\n"):
        for sample in family.samples:
            tally = tallies[sample.labels.get("name", "")]
            if sample.name == _COUNT:
                tally.calls += sample.value
            elif sample.name == _BUCKETS:
                tally.buckets[float(sample.labels["le"])] += sample.value
            elif sample.name == _REJECTIONS:
                if sample.labels.get("error_type") == _BY_THE_WEBHOOK:
                    tally.denied += sample.value
                else:
                    tally.failed += sample.value
            elif sample.name == _FAILED_OPEN:
                tally.failed += sample.value
    return {name: tally.counters() for name, tally in tallies.items()}


# The defaults of the API server (`k8s.io/kubernetes` pkg/apis/admissionregistration/v1/defaults.go, v1.36).
_DEFAULT_TIMEOUT: Final = 10
_DEFAULT_FAILURE_POLICY: Final = "Fail"
_ROLES: Final = ("active", "next", "previous")


def status(installation: Installation, counters: Mapping[str, Counters] | None) -> Status:
    """Return the status of an installation; if `counters` is None, the counters of every entry are None."""
    configurations = installation.configurations
    return Status(
        now=installation.now,
        entries=tuple(_entry(installation, kind, entry, counters) for kind, entry in installation.entries),
        missing=tuple(f"{kind} {installation.names.configuration}" for kind, f in configurations.items() if f is None),
        off=_off(installation),
        deployments=tuple(_deployments(installation)),
        leader=_leader(installation),
        authorities=tuple(_authorities(installation)),
        mode=_mode(installation),
        unread=tuple(f"{unread.subject}: {unread.reason}" for unread in installation.unread),
        incomplete=any(isinstance(configuration, Unread) for configuration in configurations.values()),
    )


def _entry(installation: Installation, kind: str, entry: Object, counters: Mapping[str, Counters] | None) -> Entry:
    phase = "mutating" if kind == MUTATING else "validating"
    return Entry(
        configuration=f"{phase}/{installation.names.configuration}",
        webhook=entry["name"],
        failure_policy=entry.get("failurePolicy") or _DEFAULT_FAILURE_POLICY,
        timeout=entry.get("timeoutSeconds") or _DEFAULT_TIMEOUT,
        ca_expires=_expiry(entry),
        sent=tuple(dict.fromkeys(name for rule in entry.get("rules") or () for name in rule.get("resources") or ())),
        off=entry["name"] in break_glass.off({"webhooks": [entry]}),
        # The metrics contain no lines for an entry that was never called.
        counters=None if counters is None else counters.get(entry["name"], Counters()),
    )


def _expiry(entry: Object) -> dt.datetime | None:
    try:
        bundle = base64.b64decode((entry.get("clientConfig") or {}).get("caBundle") or "", validate=True)
    except binascii.Error:
        return None
    return max((validity(pem)[1] for pem in split(bundle)), default=None)


def _off(installation: Installation) -> str:
    for configuration in installation.configurations.values():
        if configuration is None or isinstance(configuration, Unread) or not break_glass.off(configuration):
            continue
        note = break_glass.note(configuration)
        parts = [f"since {note.at}" if note.at else "", f"by {note.by}" if note.by else ""]
        summary = " ".join(part for part in parts if part) or "by an unknown user"
        return f"{summary}: {note.reason}" if note.reason else summary
    return ""


def _deployments(installation: Installation) -> Iterator[tuple[str, int, int]]:
    if isinstance(installation.deployments, Unread):
        return
    service = installation.service
    selector = {} if service is None or isinstance(service, Unread) else service["spec"].get("selector") or {}
    for deployment in installation.deployments:
        labels = deployment["spec"]["template"]["metadata"].get("labels") or {}
        if selector and selector.items() <= labels.items():
            ready = (deployment.get("status") or {}).get("readyReplicas", 0)
            yield deployment["metadata"]["name"], ready, deployment["spec"].get("replicas", 1)


def _leader(installation: Installation) -> str:
    lease = installation.lease
    return (
        "" if lease is None or isinstance(lease, Unread) else str((lease.get("spec") or {}).get("holderIdentity", ""))
    )


def _authorities(installation: Installation) -> Iterator[Authority]:
    secret = installation.secret
    if secret is None or isinstance(secret, Unread):
        return
    for role in _ROLES:
        for pem in split(secret.public.get(f"{role}.crt", b"")):
            yield Authority(role, validity(pem)[1])


def _mode(installation: Installation) -> str:
    policy = mounted_policy(installation)
    if policy is None:
        bundle = used_bundle(installation)
        return f"that of the policy file in the bundle {bundle}" if bundle else ""

    def describe_mode(config: PolicyConfig) -> str:
        return str(config.mode) if config.mode else "the shipped mode of each policy"

    try:
        return (
            f"{parse_policy_file(Path(policy.where), policy.text.encode(), describe_mode, EVERYWHERE)} ({policy.where})"
        )
    except PolicyFileError as error:
        return f"the policy file is invalid: {error}"
