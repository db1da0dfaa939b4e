"""`gpugate policies`: list all policies."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.cli.options import Parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.policies.sdk.policy import Policy


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    if args.output == "json":
        document = msgspec.json.encode([_described(policy) for policy in CATALOG])
        print(msgspec.json.format(document, indent=2).decode())
    else:
        for row in _rows(header=sys.stdout.isatty()):
            print(row)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate policies",
        description="List all policies with their shipped modes.",
        epilog="examples:\n  gpugate policies\n  gpugate policies -o json",
    )
    command.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="output format (default: text)"
    )
    return command


def _rows(*, header: bool) -> list[str]:
    # No header in a pipe, where programs count lines.
    rows = [("ID", "MODE", "WHAT", "KINDS")] if header else []
    rows += [(p.id, p.mode.word, p.title, ",".join(_kinds(p))) for p in CATALOG]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  ".join((*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[3])) for row in rows
    ]


def _kinds(policy: Policy) -> list[str]:
    """Return the names of the kinds, without repeating a kind that exists in several API groups."""
    return list(dict.fromkeys(kind.name for kind in policy.kinds))


def _described(policy: Policy) -> dict[str, object]:
    return {
        "id": policy.id,
        "mode": policy.mode.word,
        "kinds": _kinds(policy),
        "title": policy.title,
        "mutates": any(handler.mutates for handler in policy.handlers),
        "validates": any(not handler.mutates for handler in policy.handlers),
    }
