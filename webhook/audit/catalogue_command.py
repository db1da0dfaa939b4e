"""`gpugate catalogue`: write the instance types of a cluster's nodes to a file, for clusters and CI without a cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.engine.clusters import EVERYWHERE
from gpugate.policies.sdk.catalogue import API_VERSION, KIND, CatalogueFile
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.node_types import node_types
from gpugate.policies.sdk.objects import NODE, RESOURCE_SLICE
from gpugate.webhook.audit.cost.prices import read_price_table
from gpugate.webhook.audit.dump import DumpSource
from gpugate.webhook.audit.live import LiveSource, Throttle
from gpugate.webhook.audit.source import NotReadError
from gpugate.webhook.cli import options
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.credentials import context_name
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.cluster.options import choose_cluster
from gpugate.webhook.manifests.policy_file import load_policy_file
from gpugate.webhook.report import yaml_text
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.audit.source import Source

_QPS: Final = 50.0
_BURST: Final = 100
_NOTHING: Final = 3
_INCOMPLETE: Final = 4
_HEAD: Final = "# Instance types, written by `gpugate catalogue`. A price of a node can be added as `usd_per_hour`.\n"


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    platform = load_policy_file(args.policy_file, lambda config: config, cluster=EVERYWHERE).platform
    try:
        source, name = _source(args)
        of_nodes = node_types(_read(source, NODE), _read(source, RESOURCE_SLICE), platform)
    except (NotReadError, CallError) as error:
        print(f"error: {plain(str(error))}", file=sys.stderr)
        return _INCOMPLETE
    remarks = list(of_nodes.remarks)
    types = of_nodes.types
    if args.price_table is not None:
        table = read_price_table(args.price_table, [entry.name for entry in types])
        remarks += table.remarks
        types = tuple(
            msgspec.structs.replace(entry, usd_per_hour=float(table.prices[entry.name]))
            if entry.name in table.prices
            else entry
            for entry in types
        )
    for remark in remarks:
        print(f"warning: {plain(remark)}", file=sys.stderr)
    if not types:
        print("error: no nodes: add the output of `kubectl get nodes -o json` with --from", file=sys.stderr)
        return _NOTHING
    count = f"{len(of_nodes.by_node)} node{'' if len(of_nodes.by_node) == 1 else 's'}"
    document = CatalogueFile(source=f"{count} of {plain(name)}", complete=args.complete, types=types)
    options.write(args.output or "", written(document, as_json=str(args.output).endswith(".json")))
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    parser = Parser(
        prog="gpugate catalogue",
        description="Write the instance types of a cluster's nodes and ResourceSlices as a catalogue, for `gpugate check "
        "--catalogue` and the policy file. Nodes of the same shape are one type. Changes nothing.",
        epilog="examples:\n  gpugate catalogue -o instance-types.yaml\n"
        "  gpugate catalogue --from nodes.json --complete\n\n"
        "Exit codes: 0 the catalogue was written; 2 wrong usage; 3 no nodes; 4 the nodes\ncould not be read.",
    )
    options.add_cluster(parser, os.environ)
    options.add_policy_file(parser)
    add = parser.add_argument
    options.add_dump(parser, "read nodes and ResourceSlices from files or a dump instead of a cluster")
    add("--complete", action="store_true", help="state that nodes of other types never exist")
    add("--price-table", type=Path, metavar="FILE", help="prices of instance types, CSV or YAML")
    add(
        "-o",
        "--output",
        metavar="FILE",
        help="file to write, JSON if its name ends in .json (default: YAML on standard output)",
    )
    return parser


def _source(args: argparse.Namespace) -> tuple[Source, str]:
    """Return where the nodes are read from, and its name.

    Raises:
        UsageError: flags contradict each other, or a path does not exist.
        CallError: the cluster cannot be reached.
    """
    if args.dump:
        if args.kubeconfig or args.context:
            raise UsageError("--from selects files, --kubeconfig and --context a cluster: remove one of them")
        for path in args.dump:
            if path != "-" and not os.path.exists(path):  # noqa: PTH110 -- a name that no path can have is no error here
                raise UsageError(f"--from {path}: no such file or directory")
        return DumpSource(args.dump), ", ".join(args.dump)
    cluster = choose_cluster(args.kubeconfig, args.context, os.environ, "read nodes from files with --from PATH")
    connection = connect(cluster)
    name = context_name(cluster) or connection.host
    return LiveSource(connection, name, Throttle(_QPS, _BURST)), name


def _read(source: Source, kind: Kind) -> Iterator[Field]:
    """Yield the objects of a kind; no ResourceSlices where they are not served or not dumped.

    Raises:
        NotReadError: they cannot be read.
    """
    try:
        for stored in source.read(kind):
            yield Field(stored.object)
    except NotReadError as error:
        if not (error.absent and kind is RESOURCE_SLICE):
            raise


def written(catalogue: CatalogueFile, *, as_json: bool) -> str:
    """Write a catalogue as YAML, or as JSON."""
    document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, **msgspec.to_builtins(catalogue)}
    if as_json:
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
    return _HEAD + yaml_text.block(document)
