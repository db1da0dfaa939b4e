"""Flags for the options with which the webhook configurations were generated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.registration.entries import RiskGroup

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from gpugate.webhook.registration.meant import Meant

# Stands for an empty list.
NONE: Final = "none"


def add(parser: argparse._ActionsContainer, environment: Callable[[str], str | None]) -> None:
    """Add the flags; `environment` returns the fallback of one by its name, such as `karpenter_user`."""
    for flag, metavar, text in (
        ("--karpenter-user", "USER", "user of Karpenter whose requests the webhook configurations exclude, or none"),
        (
            "--without",
            "GROUP",
            f"group that the webhook configurations do not send: {', '.join(group.value for group in RiskGroup)}",
        ),
        ("--only-namespace", "NAME", "namespace to which the webhook configurations are limited"),
    ):
        fallback = environment(flag.removeprefix("--").replace("-", "_")) or ""
        parser.add_argument(
            flag,
            action="append",
            metavar=metavar,
            default=fallback.replace(",", " ").split() or None,
            help=f"{text}; repeatable",
        )


def meant(args: argparse.Namespace) -> Meant:
    """Return the values of the flags; None for a flag that is not given.

    Raises:
        UsageError: a group is unknown.
    """
    from gpugate.webhook.registration.meant import Meant  # noqa: PLC0415 -- imports the catalogue

    users = args.karpenter_user
    return Meant(
        karpenter_users=None if users is None else tuple(user for user in users if user != NONE),
        without=None if args.without is None else tuple(map(_group, args.without)),
        only_namespaces=None if args.only_namespace is None else tuple(args.only_namespace),
    )


def _group(name: str) -> RiskGroup:
    try:
        return RiskGroup(name)
    except ValueError:
        raise UsageError(
            f"--without {name}: unknown group\nwrite one of {', '.join(group.value for group in RiskGroup)}"
        ) from None
