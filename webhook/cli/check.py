"""`gpugate check`: what admission would do with manifests on disk."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import time
from typing import TYPE_CHECKING

from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.check.run import check
from gpugate.webhook.cli import options
from gpugate.webhook.manifests.load import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.webhook.report.located import Report

_EPILOG = """examples:
  gpugate check clusters/ apps/
  helm template my-app | gpugate check -
  gpugate check . -o text -o json=findings.json"""


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    started = time.perf_counter()
    args = _parser().parse_args(arguments)
    wanted = options.outputs(args.output or ["text"], ("text", "json"))
    ruleset = options.ruleset(args.policy_file)
    result = check(
        load([*args.path, *args.filename] or ["."], namespace=args.namespace),
        ruleset,
        dt.datetime.now(dt.UTC).date(),
        complete_context=args.complete_context,
        min_stance=Stance[args.min_mode.upper()],
    )
    for file, name in wanted.items():
        seconds = time.perf_counter() - started
        options.write(file, _json(result.report) if name == "json" else _text(result.report, args, seconds, file))
    return result.exit_code


def _text(report: Report, args: argparse.Namespace, seconds: float, file: str) -> str:
    from gpugate.webhook.report import colour, text  # noqa: PLC0415 -- only the formats that are asked for

    is_terminal = not file and sys.stdout.isatty()
    painted = colour.wanted(args.color, is_terminal=is_terminal, environment=os.environ)
    return text.write(report, colour.Paint(painted), quiet=args.quiet, seconds=seconds)


def _json(report: Report) -> str:
    from gpugate.webhook.report import json  # noqa: PLC0415 -- only the formats that are asked for

    return json.write(report)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpugate check",
        description="Judge manifests as admission would. Reads files and talks to no network.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("path", nargs="*", metavar="PATH", help="a file, a directory, a pattern, or - for standard input (default: .)")
    add("-f", "--filename", action="append", default=[], metavar="PATH", help="the same as PATH, as kubectl has it")
    add("-o", "--output", action="append", metavar="FMT[=FILE]", help="text (default) or json; repeatable")
    options.add_policy_file(parser)
    add("-n", "--namespace", default="default", help="the namespace of objects that name none (default: default)")
    add(
        "--complete-context",
        action="store_true",
        help="these are all objects of the cluster: what is missing here is missing there",
    )
    add(
        "--min-mode",
        choices=("warn", "enforce"),
        default="enforce",
        help="exit with 1 on warnings and patches too (warn), or on denials only (enforce, the default)",
    )
    add("--color", choices=("auto", "always", "never"), default="auto", help="NO_COLOR and FORCE_COLOR are honoured")
    add("-q", "--quiet", action="store_true", help="findings only, no summary")
    return parser
