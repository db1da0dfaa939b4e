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
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Names
    from gpugate.webhook.operate.switching import State
    from gpugate.webhook.operate.waiting import Reach


def confirmed(question: str, *, yes: bool) -> bool:
    """Return whether the user confirms, with --yes or at the prompt.

    Raises:
        UsageError: standard input is not a terminal.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Standard input is not a terminal: confirm with --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def print_troubles(reach: Reach, out: TextIO) -> None:
    """Print each problem with the API server's message and the remedy."""
    for trouble in reach.troubles:
        print(f"  {plain(trouble.problem)}", file=out)
        if trouble.message:
            print(f"    the API server says: {plain(trouble.message)}", file=out)
        print(f"    {plain(trouble.remedy)}", file=out)


OK: Final = 0
NOT_DONE: Final = 1
INCOMPLETE: Final = 4


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of all subcommands."""
    add = parser.add_argument
    options.add_cluster(parser, os.environ)
    add(
        "--namespace",
        "-n",
        metavar="NAME",
        default=os.environ.get("GPUGATE_NAMESPACE"),
        help="namespace of the webhook (default: the one in its configurations, else gpugate)",
    )
    add(
        "--name",
        "--webhook-configuration",
        metavar="NAME",
        default=os.environ.get("GPUGATE_WEBHOOK_CONFIGURATION", "gpugate"),
        help="name of both webhook configurations (default: gpugate)",
    )
    add(
        "--certificate-secret",
        metavar="NAME",
        default=os.environ.get("GPUGATE_CERTIFICATE_SECRET"),
        help="Secret of its certificate authorities (default: the name of the configurations with -certificates)",
    )


@contextmanager
def connected(args: argparse.Namespace) -> Iterator[Connection]:
    """Create the connection to the selected cluster, without sending a request.

    Raises:
        ClusterError: no cluster is configured, or its configuration is invalid.
    """
    connection = connect(choose_cluster(args.kubeconfig, args.context, os.environ))
    try:
        yield connection
    finally:
        connection.close()


def names(connection: Connection, args: argparse.Namespace) -> Names:
    """Return the names of the installation's objects."""
    from gpugate.webhook.operate.installation import find_names  # noqa: PLC0415 -- imports cryptography, which --help does not need

    installation_names = find_names(connection, args.name, args.namespace)
    return (
        replace(installation_names, secret=args.certificate_secret) if args.certificate_secret else installation_names
    )


def report_unusable(states: Sequence[State]) -> int | None:
    """Report unreadable and foreign configurations; return an exit code if no configuration is usable, else None."""
    unread = [state for state in states if state.unread]
    foreign = [state for state in states if state.exists and not state.ours]
    for state in unread:
        print(f"error: {state.configuration}: {state.unread}", file=sys.stderr)
    for state in foreign:
        print(
            f"error: {state.configuration} does not belong to gpugate: missing label app.kubernetes.io/name: gpugate",
            file=sys.stderr,
        )
    if any(state.ours for state in states):
        return None
    if unread:
        return INCOMPLETE
    if not foreign:
        print(
            f"webhook configuration {states[0].configuration.name} does not exist: the API server does not call gpugate. "
            "Set --name if it has another name: "
            "kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations",
            file=sys.stderr,
        )
    return NOT_DONE
