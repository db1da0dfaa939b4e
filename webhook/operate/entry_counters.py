"""What an API server has counted for each webhook entry, from its metrics.

Source: `k8s.io/apiserver` pkg/admission/metrics/metrics.go, v0.36.3. Of these the durations are stable, the counts alpha.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.report.status import Counters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.webhook.cluster.connection import Connection

_PREFIX: Final = "apiserver_admission_webhook_"
_BUCKETS: Final = f"{_PREFIX}admission_duration_seconds_bucket"
_COUNT: Final = f"{_PREFIX}admission_duration_seconds_count"
_REJECTIONS: Final = f"{_PREFIX}rejection_count"
_FAILED_OPEN: Final = f"{_PREFIX}fail_open_count"
_BY_THE_WEBHOOK: Final = "no_error"


@dataclass(slots=True)
class _Tally:
    calls: float = 0
    refused: float = 0
    failed: float = 0
    buckets: dict[float, float] = field(default_factory=lambda: defaultdict(float))

    def counters(self) -> Counters:
        within = [bound for bound, count in sorted(self.buckets.items()) if self.calls and count >= 0.99 * self.calls]
        slowest = within[0] if within and within[0] != float("inf") else None
        return Counters(int(self.calls), int(self.refused), int(self.failed), slowest)


def read_counters(connection: Connection) -> Mapping[str, Counters] | None:
    """Return the name of each webhook entry that was asked -> what was counted; None where it may not be read.

    The right to read is a nonResourceURL, `/metrics`, which administrators have.
    """
    try:
        text = connection.read("/metrics", {}).decode()
    except (CallError, UnicodeDecodeError):
        return None
    return counted(text)


def counted(text: str) -> Mapping[str, Counters]:
    """Read the counters from Prometheus' text format."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 -- only a status needs it

    # An API server has tens of thousands of other lines.
    ours = "\n".join(line for line in text.splitlines() if line.startswith(_PREFIX))
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    for family in text_string_to_metric_families(f"{ours}\n"):
        for sample in family.samples:
            tally = tallies[sample.labels.get("name", "")]
            if sample.name == _COUNT:
                tally.calls += sample.value
            elif sample.name == _BUCKETS:
                tally.buckets[float(sample.labels["le"])] += sample.value
            elif sample.name == _REJECTIONS:
                if sample.labels.get("error_type") == _BY_THE_WEBHOOK:
                    tally.refused += sample.value
                else:
                    tally.failed += sample.value
            elif sample.name == _FAILED_OPEN:
                tally.failed += sample.value
    return {name: tally.counters() for name, tally in tallies.items()}
