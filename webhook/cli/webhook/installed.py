"""Flags that select an installation, the connection to its cluster, and confirmation prompts."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TextIO

from gpugate.webhook.cli import options
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.options import choose_cluster
from gpugate.webhook.operate.installation import found_names
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Names
    from gpugate.webhook.operate.switching import State
    from gpugate.webhook.operate.waiting import Reach


def confirmed(question: str, *, yes: bool) -> bool:
    """Return whether to go on: it was said beforehand, or is said now.

    Raises:
        UsageError: nobody is there to ask.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Nobody is at a terminal to answer: add --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def tell_troubles(reach: Reach, out: TextIO) -> None:
    """Write each trouble with what the API server said and what to do."""
    for trouble in reach.troubles:
        print(f"  {plain(trouble.what)}", file=out)
        if trouble.said:
            print(f"    the API server says: {plain(trouble.said)}", file=out)
        print(f"    {plain(trouble.remedy)}", file=out)


OK: Final = 0
NOT_SO: Final = 1
INCOMPLETE: Final = 4


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add what every subcommand takes."""
    add = parser.add_argument
    options.add_cluster(parser, os.environ)
    add(
        "--namespace",
        "-n",
        metavar="NAME",
        default=os.environ.get("GPUGATE_NAMESPACE"),
        help="where the webhook runs (default: what its configurations say, else gpugate)",
    )
    add(
        "--name",
        "--webhook-configuration",
        metavar="NAME",
        default=os.environ.get("GPUGATE_WEBHOOK_CONFIGURATION", "gpugate"),
        help="what both webhook configurations are called (default: gpugate)",
    )
    add(
        "--certificate-secret",
        metavar="NAME",
        default=os.environ.get("GPUGATE_CERTIFICATE_SECRET"),
        help="the Secret of its certificate authorities (default: the name of the configurations and -certificates)",
    )


@contextmanager
def connected(args: argparse.Namespace) -> Iterator[Connection]:
    """Open the way to the cluster that is meant; nothing is sent yet.

    Raises:
        ClusterError: there is none, or it cannot be used.
    """
    connection = connect(choose_cluster(args.kubeconfig, args.context, os.environ))
    try:
        yield connection
    finally:
        connection.close()


def names(connection: Connection, args: argparse.Namespace) -> Names:
    """Return what the parts of the installation are called."""
    found = found_names(connection, args.name, args.namespace)
    return replace(found, secret=args.certificate_secret) if args.certificate_secret else found


def say_unfit(states: Sequence[State]) -> int | None:
    """Say why nothing can be done about configurations, and return the exit code; None where one is to be worked on."""
    unread = [state for state in states if state.unread]
    foreign = [state for state in states if state.exists and not state.ours]
    for state in unread:
        print(f"error: {state.configuration}: {state.unread}", file=sys.stderr)
    for state in foreign:
        print(
            f"error: {state.configuration} is not gpugate's: it has no label app.kubernetes.io/name: gpugate",
            file=sys.stderr,
        )
    if any(state.ours for state in states):
        return None
    if unread:
        return INCOMPLETE
    if not foreign:
        print(
            f"there is no webhook configuration {states[0].configuration.name}: nothing is asked of gpugate. "
            "Is it called otherwise (--name)? kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations",
            file=sys.stderr,
        )
    return NOT_SO
