"""Which cluster an audit is of, and which run it is: from flags, the policy file or the cluster itself."""

from __future__ import annotations

import datetime as dt
import secrets
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gpugate.policies.sdk.platform import ClusterIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.audit.model import AuditReport, Cluster

_EMPTY: Final = ClusterIdentity()


def new_run_id(time: dt.datetime) -> str:
    """Return an id for a run, which differs from that of every other run, also of one in the same second."""
    return f"{time.astimezone(dt.UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def identified(report: AuditReport, flagged: ClusterIdentity, configured: ClusterIdentity | None) -> AuditReport:
    """Return a report that names its cluster, and says if the clock of this machine is wrong.

    Args:
        report: the report, whose cluster has its UID if that could be read.
        flagged: what the flags say, which takes precedence.
        configured: what the policy file says.
    """
    configured = configured or _EMPTY
    cluster = replace(
        report.cluster,
        id=flagged.name or configured.name or report.cluster.uid,
        region=flagged.region or configured.region or "",
        labels=dict(sorted({**configured.labels, **flagged.labels}.items())),
    )
    return replace(report, cluster=cluster, remarks=(*report.remarks, *_clock(cluster)))


_TOLERATED: Final = 60


def _clock(cluster: Cluster) -> Iterator[str]:
    ahead = cluster.clock_ahead_seconds or 0
    if abs(ahead) > _TOLERATED:
        direction = "ahead of" if ahead > 0 else "behind"
        yield (
            f"the clock of this machine is {abs(ahead):,} s {direction} that of the API server: times, expired exemptions and "
            "trends may be wrong"
        )
