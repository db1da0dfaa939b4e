"""`gpugate schema`: list the schemas that `check` uses, and add schemas of other kinds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.manifests.documents import Document, read_bytes
from gpugate.webhook.manifests.inputs import Input, expand
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.schemas import tables
from gpugate.webhook.schemas.tables import read

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.schemas.added import Added
    from gpugate.webhook.schemas.table import Table

_NOTHING = 3
_INCOMPLETE = 4
_WIDTH = 120  # characters of a rule or pattern that are printed


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    return _add(args.path, args.schemas) if args.command == "add" else _list(args.schemas, args.output)


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate schema",
        description="List the schemas that `gpugate check` uses, and add schemas of other kinds.",
        epilog="examples:\n  gpugate schema list\n  gpugate schema add crds/",
    )
    commands = command.add_subparsers(dest="command", required=True, metavar="list|add")
    listed = commands.add_parser(
        "list",
        help="list all kinds with a schema",
        description="List all kinds with a schema, their versions and the releases that define them.",
        epilog="examples:\n  gpugate schema list",
    )
    listed.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="output format (default: text)"
    )
    added = commands.add_parser(
        "add",
        help="add the schemas of CustomResourceDefinitions",
        description="Add the schemas of CustomResourceDefinitions. An added schema replaces a bundled one of the same kind.",
        epilog="examples:\n  gpugate schema add crds/\n  kubectl get crd nodepools.karpenter.sh -o yaml | gpugate schema add -",
    )
    added.add_argument("path", nargs="+", metavar="PATH", help="file, directory or pattern; - for standard input")
    for subcommand in (listed, added):
        subcommand.add_argument(
            "--schemas",
            type=Path,
            metavar="DIR",
            default=tables.FOLDER,
            help=f"folder of additional schemas (default: {tables.FOLDER})",
        )
    return command


def _list(folder: Path, output: str) -> int:
    own = [read(file) for file in tables.listed(folder)]
    known = {(table.group, table.kind) for table in own}
    bundled = [*_core(), *(read(file) for file in tables.listed(tables.BUNDLED))]
    rows = [_row(table) for table in (*own, *(t for t in bundled if (t.group, t.kind) not in known))]
    if output == "json":
        print(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return 0
    cells = [(row["group"], row["kind"], ",".join(row["versions"]), _from(row)) for row in rows]
    # No header in a pipe, where programs count lines.
    cells = [("GROUP", "KIND", "VERSIONS", "FROM"), *cells] if sys.stdout.isatty() else cells
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    for row in cells:
        print("  ".join((*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[3])))
    return 0


def _core() -> Iterator[Table]:
    """Yield the schema table of each core kind."""
    table = read(tables.BUNDLED / tables.CORE)
    for group, kind in sorted(tables.CORE_KINDS):
        releases = [
            msgspec.structs.replace(
                release,
                served={
                    name.partition(" ")[0].rpartition("/")[2]: served
                    for name, served in release.served.items()
                    if (name.partition(" ")[0].rpartition("/")[0], name.partition(" ")[2]) == (group, kind)
                },
            )
            for release in table.releases
        ]
        if any(release.served for release in releases):
            yield msgspec.structs.replace(table, group=group, kind=kind, releases=tuple(releases))


def _row(table: Table) -> dict[str, Any]:
    releases = table.releases
    unchecked = sum(not rule.test for node in table.nodes for rule in node.rules)
    return {
        "group": table.group,
        "kind": table.kind,
        "versions": sorted({version for release in releases for version in release.served}),
        "project": table.project,
        "releases": [release.minor for release in releases if release.minor],
        "sources": [release.source for release in releases],
        "rules_not_checked": unchecked,
    }


def _from(row: dict[str, Any]) -> str:
    left = f" ({row['rules_not_checked']} rules not checked)" if row["rules_not_checked"] else ""
    return f"{row['project']} {', '.join(row['releases'])}" if row["project"] else f"{row['sources'][0]}{left}"


def _add(paths: Sequence[str], folder: Path) -> int:
    from gpugate.webhook.schemas.compile import is_definition  # noqa: PLC0415 -- brings the compiler of definitions along

    failed, places_of = False, dict[tuple[str, str], str]()
    for part in _documents(paths):
        try:
            if isinstance(part, Problem):
                raise UsageError(f"{part.message}: {part.remedy}")
            if is_definition(part.value):
                _take(part, folder, places_of)
        except GpugateError as error:
            failed = True
            line = part.line if isinstance(part, Problem) else part.first_line
            print(f"error: {part.source}:{line}: {error}", file=sys.stderr)
    if failed:
        return _INCOMPLETE
    if not places_of:
        print("error: the input contains no CustomResourceDefinition", file=sys.stderr)
    return 0 if places_of else _NOTHING


def _take(document: Document, folder: Path, places_of: dict[tuple[str, str], str]) -> None:
    """Write the table of a definition and print its file; `places_of` contains the locations of earlier definitions."""
    from gpugate.webhook.schemas.added import table_of, write  # noqa: PLC0415 -- as above

    value = document.value if isinstance(document.value, dict) else {}
    added = table_of(value, document.source)
    key = (added.table.group, added.table.kind)
    if key in places_of:
        raise UsageError(f"{key[1]} of {key[0]} is also defined in {places_of[key]}; leave one out")
    places_of[key] = f"{document.source}:{document.first_line}"
    _print_added(added, str(write(added.table, folder)))


def _print_added(added: Added, file: str) -> None:
    table = added.table
    print(f"{table.kind} of {table.group} ({', '.join(table.releases[0].served)}): wrote {file}")
    places_of: dict[tuple[str, str], list[str]] = {}
    for unchecked in added.unchecked:
        key = (" ".join(unchecked.expression.split()), unchecked.why)
        places_of.setdefault(key, []).append(unchecked.path or "the object")
    for (expression, why), paths in places_of.items():
        more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
        print(f"  not checked: {paths[0]}{more}: {expression[:_WIDTH]}: {why}")


def _documents(paths: Sequence[str]) -> Iterator[Document | Problem]:
    """Yield the documents of files, and a problem for each unreadable part."""
    for file in expand(paths):
        data = file.read() if isinstance(file, Input) else file
        if isinstance(data, Problem):
            yield data
        elif isinstance(file, Input) and isinstance(data, bytes):
            parts = read_bytes(file.label, data)
            yield from (part for part in parts if not (isinstance(part, Problem) and part.warning))
