"""`gpugate policies`: list all policies."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.options import Parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.own_policies.catalog import Catalog


# The origin of the library's policies.
LIBRARY: Final = "gpugate"


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args, project = project_flags.parse(parser(), "policies", arguments)
    _, catalog = options.bound(args.policy_file, project.own)
    for remark in (*project.remarks, *catalog.remarks):
        print(f"warning: {remark}", file=sys.stderr)
    if args.output == "json":
        document = msgspec.json.encode([_described(policy, catalog) for policy in catalog.policies])
        print(msgspec.json.format(document, indent=2).decode())
    else:
        for row in _rows(catalog, header=sys.stdout.isatty()):
            print(row)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate policies",
        description="List all policies with their shipped modes, and the origin of those outside the library.",
        epilog="examples:\n  gpugate policies\n  gpugate policies -o json\n  gpugate policies --policy-path policies",
    )
    command.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="output format (default: text)"
    )
    options.add_policy_file(command, options.OF_THE_PROJECT)
    project_flags.add_own_policies(command)
    project_flags.add(command)
    return command


def _rows(catalog: Catalog, *, header: bool) -> list[str]:
    # No header in a pipe, where programs count lines. The column of origins exists only if there are several.
    origins = catalog.origins
    rows = [("ID", "MODE", "WHAT", "ORIGIN", "KINDS")] if header else []
    for policy in catalog.policies:
        origin = origins[policy.id].origin if policy.id in origins else LIBRARY
        rows.append((policy.id, policy.mode.word, policy.title, origin, ",".join(_kinds(policy))))
    columns = range(5) if origins else (0, 1, 2, 4)
    widths = [max(len(row[column]) for row in rows) for column in columns[:-1]]
    return [
        "  ".join(f"{row[column]:<{width}}" for column, width in zip(columns, (*widths, 0), strict=True))
        for row in rows
    ]


def _kinds(policy: Policy) -> list[str]:
    """Return the names of the kinds, without repeating a kind that exists in several API groups."""
    return list(dict.fromkeys(kind.name for kind in policy.kinds))


def _described(policy: Policy, catalog: Catalog) -> dict[str, object]:
    own = catalog.origins.get(policy.id)
    return {
        "id": policy.id,
        "mode": policy.mode.word,
        "kinds": _kinds(policy),
        "title": policy.title,
        "mutates": any(handler.mutates for handler in policy.handlers),
        "validates": any(not handler.mutates for handler in policy.handlers),
        "origin": own.origin if own else LIBRARY,
    }
