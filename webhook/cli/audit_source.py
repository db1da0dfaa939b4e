"""Opens what `gpugate audit` reads: the cluster, or a dump."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.webhook.audit.dump import DumpSource
from gpugate.webhook.audit.live import LiveSource
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.credentials import context_name
from gpugate.webhook.cluster.options import chosen

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.audit.live import Throttle
    from gpugate.webhook.cluster.connection import Connection


def connected(args: argparse.Namespace) -> tuple[Connection, str] | None:
    """Return the way to the cluster and its name; None where a dump is to be audited.

    Raises:
        GpugateError: the kubeconfig cannot be used, or flags contradict each other.
    """
    if args.dump:
        if args.kubeconfig or args.context:
            raise UsageError("--from reads a dump, and --kubeconfig or --context a cluster: leave one of them out")
        return None
    options = chosen(args.kubeconfig, args.context, os.environ)
    connection = connect(options)
    return connection, context_name(options) or connection.host


def live(
    connection: Connection,
    name: str,
    args: argparse.Namespace,
    throttle: Throttle,
    told: Callable[[Kind, int, int | None], None],
) -> LiveSource:
    """Return the cluster as a source.

    Raises:
        CallError: it cannot be reached.
    """
    return LiveSource(connection, name, throttle, limit=args.chunk_size, namespaces=tuple(args.namespace), told=told)


def dump(args: argparse.Namespace) -> DumpSource:
    """Return a dump as a source.

    Raises:
        UsageError: a path is not there.
    """
    for path in args.dump:
        if path != "-" and not Path(path).exists():
            raise UsageError(f"--from {path}: no such file or directory")
    return DumpSource(args.dump, complete=args.complete_context)
