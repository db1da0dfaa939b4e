"""Which cluster an audit is of, and which run it is: from flags, the policy file or the cluster itself."""

from __future__ import annotations

import datetime as dt
import secrets
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk.platform import ClusterIdentity

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from gpugate.webhook.audit.model import AuditReport, Cluster

_EMPTY: Final = ClusterIdentity()


class IdentityError(GpugateError):
    """A flag has an invalid name, region or label."""


def add_identity(group: argparse._ActionsContainer) -> None:
    """Add the flags."""
    add = group.add_argument
    add(
        "--cluster-name",
        metavar="NAME",
        help="name of the cluster in results (default: platform.cluster.name, else a UID)",
    )
    add("--cluster-region", metavar="NAME", help="region of the cluster in results (default: platform.cluster.region)")
    add(
        "--cluster-label",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="label of the cluster in results; replaces that of platform.cluster.labels; repeatable",
    )


def identity(args: argparse.Namespace) -> ClusterIdentity:
    """Return what the flags say of the cluster.

    Raises:
        IdentityError: a flag has an invalid value.
    """
    labels = dict(_label(text) for text in args.cluster_label)
    flags = {"--cluster-name": {"name": args.cluster_name}, "--cluster-region": {"region": args.cluster_region}}
    flags |= {f"--cluster-label {key}={value}": {"labels": {key: value}} for key, value in labels.items()}
    for flag, given in flags.items():
        try:
            msgspec.convert(given, ClusterIdentity)
        except msgspec.ValidationError:
            value = next(iter(given.values()))
            text = flag if isinstance(value, dict) else f"{flag} {value}"
            raise IdentityError(
                f"{text}: write letters and digits, and between them also the characters . _ -, at most 100"
            ) from None
    return ClusterIdentity(name=args.cluster_name, region=args.cluster_region, labels=labels)


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise IdentityError(f"--cluster-label {text}: write KEY=VALUE")
    return key, value


def new_run_id(time: dt.datetime) -> str:
    """Return an id for a run, which differs from that of every other run, also of one in the same second."""
    return f"{time.astimezone(dt.UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def identified(report: AuditReport, given: ClusterIdentity, configured: ClusterIdentity | None) -> AuditReport:
    """Return a report that names its cluster, and says if the clock of this machine is wrong.

    Args:
        report: the report, whose cluster has its UID if that could be read.
        given: what the flags say, which takes precedence.
        configured: what the policy file says.
    """
    configured = configured or _EMPTY
    cluster = replace(
        report.cluster,
        id=given.name or configured.name or report.cluster.uid,
        region=given.region or configured.region or "",
        labels=dict(sorted({**configured.labels, **given.labels}.items())),
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
