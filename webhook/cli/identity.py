"""The flags that say which cluster a command is about: its name, region and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk.platform import ClusterIdentity

if TYPE_CHECKING:
    import argparse


class IdentityError(GpugateError):
    """A flag has an invalid name, region or label."""


def add_identity(group: argparse._ActionsContainer) -> None:
    """Add the flags."""
    add = group.add_argument
    add(
        "--cluster-name",
        metavar="NAME",
        help="name of the cluster, in results and for `clusters` of the policy file (default: platform.cluster.name)",
    )
    add("--cluster-region", metavar="NAME", help="region of the cluster (default: platform.cluster.region)")
    add(
        "--cluster-label",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="label of the cluster; replaces that of platform.cluster.labels; repeatable",
    )


def identity(args: argparse.Namespace) -> ClusterIdentity:
    """Return what the flags say of the cluster.

    Raises:
        IdentityError: a flag has an invalid value.
    """
    labels = dict(_label(text) for text in args.cluster_label)
    flags = {"--cluster-name": {"name": args.cluster_name}, "--cluster-region": {"region": args.cluster_region}}
    flags |= {f"--cluster-label {key}={value}": {"labels": {key: value}} for key, value in labels.items()}
    for flag, identity_part in flags.items():
        try:
            msgspec.convert(identity_part, ClusterIdentity)
        except msgspec.ValidationError:
            value = next(iter(identity_part.values()))
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


def cluster_of(args: argparse.Namespace) -> ClusterIdentity | None:
    """Return the cluster that the flags describe; None if they say nothing.

    Raises:
        IdentityError: a flag has an invalid value.
    """
    of_flags = identity(args)
    return None if of_flags == ClusterIdentity() else of_flags


def identity_flags(cluster: ClusterIdentity) -> list[str]:
    """Return the flags that describe a cluster."""
    named = [("--cluster-name", cluster.name), ("--cluster-region", cluster.region)]
    flags = [f"{flag}={value}" for flag, value in named if value is not None]
    return flags + [f"--cluster-label={key}={value}" for key, value in cluster.labels.items()]
