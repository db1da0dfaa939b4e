"""`gpugate generate`: what the Helm chart installs, without Helm."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpugate.policies.engine.config import ConfigError
from gpugate.policies.sdk.field import render
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.generate.chart.manifests import default_values, manifests, merged
from gpugate.webhook.manifests.documents import Document, Positions, read_bytes
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    for flag in ("name", "namespace"):
        if not _LABEL.fullmatch(getattr(args, flag)):
            raise UsageError(
                f"--{flag} {getattr(args, flag)}: is no name of lower case letters, digits and dashes, 63 at most"
            )
    documents = [_read(file) for file in args.values]
    values = default_values()
    for document in documents:
        values = merged(document.value, values)
    try:
        objects = list(manifests(values, args.name, args.namespace))
    except ConfigError as error:
        raise UsageError(_located(error, documents)) from None
    sys.stdout.write("---\n".join(yaml_text.block(each) for each in objects))
    return 0


def _read(file: Path) -> Document:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {(error.strerror or 'cannot be read').lower()}") from None
    documents: list[Document] = []
    for found in read_bytes(str(file), content):
        if isinstance(found, Problem):
            raise UsageError(f"{file}:{found.line}:{found.column}: {found.message}: {found.remedy}")
        documents.append(found)
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise UsageError(f"{file}: is no file of values: write one YAML object, as charts/gpugate/values.yaml")
    return documents[0]


def _located(error: ConfigError, documents: Sequence[Document]) -> str:
    """Say where a mistake is: in the last file that says anything there."""
    where = f"{render(error.path)}: " if error.path else ""
    for document in reversed(documents):
        if error.path and _says(document.value, error.path[0]):
            place = Positions(document).find(error.path)
            return f"{document.source}:{place.line}:{place.column}: {where}{error.message}"
    return f"{where}{error.message}"


def _says(values: Any, key: str | int) -> bool:  # Any: the JSON edge
    return isinstance(values, dict) and key in values


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    made = Parser(prog="gpugate generate", description="Print what installs gpugate.")
    commands = made.add_subparsers(dest="command", required=True, metavar="manifests")
    found = commands.add_parser(
        "manifests",
        help="what the Helm chart installs, without Helm",
        description="Print the objects of the Helm chart for the same values, but for its hooks: "
        "gpugate generate manifests ... | kubectl apply --server-side -f -",
    )
    add = found.add_argument
    add(
        "--values",
        "-f",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="values as for `helm install`; repeatable, a later file wins",
    )
    add("--namespace", "-n", metavar="NAME", default="gpugate", help="where the webhook runs; make it first")
    add("--name", metavar="NAME", default="gpugate", help="what the objects are called (default: gpugate)")
    return made
