"""`gpugate fleet`: a report of many clusters from the tables of their audits, and the SQL of its views."""

from __future__ import annotations

import datetime as dt
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.cli import options
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.fleet import formats, page
from gpugate.webhook.report import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.webhook.fleet.model import FleetReport

# Ibis imports DuckDB late, and describes its absence in words of its own.
_LIBRARIES: Final = ("duckdb", "fsspec", "pyarrow", "ibis")
_NOTHING: Final = 3
_INCOMPLETE: Final = 4
_MOST_DAYS: Final = 366
DIALECTS: Final = ("duckdb", "clickhouse", "trino")
_EPILOG: Final = """examples:
  gpugate fleet report s3://audits/gpugate
  gpugate fleet report ./audits -o text -o html=fleet.html
  gpugate fleet report --engine trino://reader@trino:8080/hive/gpugate
  gpugate fleet sql ./audits > views.sql

PATH is what `gpugate audit -o parquet=PATH` and `-o ndjson=PATH` write to: a
directory, or the URL of a bucket. With --engine and without PATH, the tables
are those that the engine has.

Exit codes: 0 success; 2 wrong usage; 3 no run in the window; 4 a path or a file
could not be read: the report names it and contains the others."""
_SQL_EPILOG: Final = """examples:
  gpugate fleet sql ./audits > views.sql
  gpugate fleet sql --dialect trino

With PATH, the tables are defined over its Parquet files first."""


class _MissingError(GpugateError):
    """A library of the extra is not installed."""


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    try:
        for library in _LIBRARIES:
            import_module(library)
        return _sql(args) if args.command == "sql" else _report(args)
    except ModuleNotFoundError as error:
        if not error.name or error.name.startswith("gpugate"):
            raise
        raise _MissingError(
            f"{error.name} is not installed\ninstall the extra `fleet`: run `pip install '.[fleet]'` in a checkout of gpugate"
        ) from None


def _report(args: argparse.Namespace) -> int:
    outputs = options.outputs(args.output or [formats.FORMATS[0]], formats.FORMATS)
    if not args.paths and not args.engine:
        raise UsageError(
            "PATH is missing: name the directory or bucket of the tables, or an engine that has them with --engine"
        )
    from gpugate.webhook.fleet.evaluate import report_of_engine, report_of_files  # noqa: PLC0415 -- an extra, slow to import

    now = args.at or dt.datetime.now(dt.UTC)
    silent_after = dt.timedelta(seconds=args.silent_after)
    if args.paths:
        report = report_of_files(args.paths, now, args.days, silent_after, args.engine, args.timeout)
    else:
        report = report_of_engine(args.engine, now, args.days, silent_after)
    if not report.totals.clusters and not report.silent:
        for note in formats.notes(report):
            print(f"note: {plain.plain(note)}", file=sys.stderr)
        where = ", ".join(report.sources)
        print(f"error: {plain.plain(where)}: no run in the last {args.days} days", file=sys.stderr)
        return _INCOMPLETE if report.problems else _NOTHING
    for file, name in outputs.items():
        options.write(file, _render(name, report, args, is_terminal=not file and sys.stdout.isatty()))
    return _INCOMPLETE if report.problems else 0


def _render(name: str, report: FleetReport, args: argparse.Namespace, *, is_terminal: bool) -> str:
    if name == "json":
        return formats.render_json(report)
    if name == "csv":
        return formats.render_csv(report)
    if name == "html":
        return page.render(report)
    paint = plain.Paint(plain.wanted(args.color, is_terminal=is_terminal, environment=os.environ))
    return formats.render_text(report, args.top, paint)


def _sql(args: argparse.Namespace) -> int:
    if args.path and args.dialect != DIALECTS[0]:
        raise UsageError(f"--dialect {args.dialect}: define the tables in the engine, and leave out PATH")
    from gpugate.webhook.fleet.files import open_source  # noqa: PLC0415 -- an extra, slow to import
    from gpugate.webhook.fleet.sql import statements  # noqa: PLC0415 -- an extra, slow to import

    source = open_source(args.path, args.timeout) if args.path else None
    text = statements(args.dialect, source, args.days, int(args.silent_after), args.at)
    sys.stdout.write(text)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate fleet",
        description="Report spend, waste, risk and drift of many clusters from the tables that their audits wrote.",
        epilog=_EPILOG,
    )
    commands = command.add_subparsers(dest="command", required=True, metavar="COMMAND")
    report = commands.add_parser(
        "report",
        help="print one report of all clusters",
        description="Print one report of all clusters.",
        epilog=_EPILOG,
    )
    report.add_argument("paths", nargs="*", metavar="PATH", help="directories or bucket URLs with the tables")
    report.add_argument(
        "--engine",
        default="",
        metavar="URL",
        help="evaluate on another engine, by its URL in Ibis (default: DuckDB in this process)",
    )
    report.add_argument(
        "-o",
        "--output",
        action="append",
        metavar="FORMAT[=FILE]",
        help=f"write {options.listed(formats.FORMATS)}, to FILE or standard output; repeatable (default: text)",
    )
    report.add_argument(
        "--top",
        type=options.natural,
        default=10,
        metavar="N",
        help="rows of each table of the text; 0 for all (default: 10)",
    )
    report.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="use colours (default: auto)"
    )
    sql = commands.add_parser(
        "sql",
        help="print the views of the report as SQL",
        description="Print the views of the report as SQL, for questions of your own.",
        epilog=_SQL_EPILOG,
    )
    sql.add_argument(
        "path", nargs="?", default="", metavar="PATH", help="directory or bucket URL with Parquet tables, for DuckDB"
    )
    sql.add_argument(
        "--dialect", choices=DIALECTS, default=DIALECTS[0], help="engine that the SQL is for (default: duckdb)"
    )
    for sub in (report, sql):
        sub.add_argument(
            "--days", type=options.days(_MOST_DAYS), default=30, metavar="N", help="days to read (default: 30)"
        )
        sub.add_argument(
            "--silent-after",
            type=options.seconds,
            default=36 * 3600.0,
            metavar="DURATION",
            help="age of the last run from which a cluster counts as not reporting (default: 36h)",
        )
        sub.add_argument(
            "--timeout",
            type=options.timeout,
            default=60.0,
            metavar="DURATION",
            help="how long PATH may take for each list and each file (default: 60s)",
        )
        sub.add_argument(
            "--at",
            type=options.time,
            metavar="TIME",
            help="time of the report, such as 2026-11-23T12:00:00Z (default: now)",
        )
    return command
