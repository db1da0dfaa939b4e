"""The flags of `gpugate test`."""

from __future__ import annotations

import argparse
from typing import Final

from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.command_parser import Parser

FORMATS: Final = ("text", "junit", "json")

_EPILOG: Final = """examples:
  gpugate test policies/
  gpugate test . -k 'taint and not spot' -x
  gpugate test . --coverage=100 -o text -o junit=gpugate-tests.xml
  gpugate test policies/nodepool.gpugate-test.yaml --update

Tests are the cases in files called *.gpugate-test.yaml, and manifests with comments such as `# expect: ID` at the end of
the line on which that policy finds something, or `# expect: nothing`.

Exit codes: 0 all passed; 1 a test failed, or the coverage is too low; 2 wrong usage or configuration; 3 no tests;
4 a test or a file of tests is wrong or cannot be read."""


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    made = Parser(
        prog="gpugate test",
        description="Run tests of policies and manifests. Reads files and talks to no network.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("path", nargs="*", metavar="PATH", help="a file, a directory or a pattern (default: .)")
    add("-k", dest="names", metavar="EXPR", help="only tests whose file or name contains this; `and`, `or`, `not`, ( )")
    add("-x", dest="stop", action="store_true", help="stop at the first test that does not pass")
    add("--update", action="store_true", help="rewrite the expectations of tests that fail, and show what changes")
    add(
        "--coverage",
        nargs="?",
        type=_percent,
        const=0.0,
        metavar="MIN",
        help="say which policies have a passing and a failing test; fail below MIN percent (write --coverage=MIN)",
    )
    add("--require-tests", action="store_true", help="fail with 1 when a PATH holds no test")
    options.add_policy_file(made, options.OF_THE_PROJECT)
    add("-o", "--output", action="append", metavar="FMT[=FILE]", help="text (default), junit, json; repeatable")
    add("--color", choices=("auto", "always", "never"), default="auto", help="NO_COLOR and FORCE_COLOR are honoured")
    add("-q", "--quiet", action="store_true", help="what failed only, no summary")
    project_flags.add(made)
    return made


def _percent(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 100:
        raise argparse.ArgumentTypeError(
            f"{text}: write a number from 0 to 100, as in --coverage=80, and PATH before it"
        )
    return found
