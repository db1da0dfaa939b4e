"""The flags of `gpugate check`."""

from __future__ import annotations

import argparse
from typing import Final

from gpugate.webhook.cli import options
from gpugate.webhook.cli.formats import FORMATS

_EPILOG: Final = """examples:
  gpugate check clusters/ apps/
  helm template my-app | gpugate check -
  gpugate check . -o text -o sarif=gpugate.sarif
  gpugate check . --diff
  gpugate check . --select 'nodepools/*' --fix

A comment `# gpugate: ignore[ID, ID] reason` lets findings on its line pass, or on the next one when it stands alone."""


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    made = argparse.ArgumentParser(
        prog="gpugate check",
        description="Judge manifests as admission would. Reads files and talks to no network.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_inputs(made)
    _add_policies(made)
    _add_fixes(made)
    _add_output(made)
    return made


def _add_inputs(made: argparse.ArgumentParser) -> None:
    add = made.add_argument
    add("path", nargs="*", metavar="PATH", help="a file, a directory, a pattern, or - for standard input (default: .)")
    add("-f", "--filename", action="append", default=[], metavar="PATH", help="the same as PATH, as kubectl has it")
    add("-n", "--namespace", default="default", help="the namespace of objects that name none (default: default)")
    add(
        "--complete-context",
        action="store_true",
        help="these are all objects of the cluster: what is missing here is missing there",
    )


def _add_policies(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("policies")
    options.add_policy_file(group)
    add = group.add_argument
    add("--select", action="append", default=[], metavar="ID", help="only these policies; ID or pattern, repeatable")
    add("--ignore", action="append", default=[], metavar="ID", help="without these policies; ID or pattern, repeatable")
    add("--no-ignores", action="store_true", help="do not honour `# gpugate: ignore[ID] reason` in files")
    add(
        "--min-mode",
        choices=("warn", "enforce"),
        default="enforce",
        help="exit with 1 on warnings and patches too (warn), or on denials only (enforce, the default)",
    )


def _add_fixes(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("fixes")
    either = group.add_mutually_exclusive_group()
    either.add_argument("--fix", action="store_true", help="write the changes that are safe, and those admission makes")
    either.add_argument("--diff", action="store_true", help="print what --fix would change, and write nothing")
    group.add_argument(
        "--unsafe-fixes", action="store_true", help="also changes that may alter scheduling or cost, and new objects"
    )


def _add_output(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("output")
    add = group.add_argument
    formats = ", ".join(FORMATS[1:])
    add("-o", "--output", action="append", metavar="FMT[=FILE]", help=f"text (default), {formats}; repeatable")
    add("--color", choices=("auto", "always", "never"), default="auto", help="NO_COLOR and FORCE_COLOR are honoured")
    add("-q", "--quiet", action="store_true", help="findings only, no summary")
    add("-j", "--jobs", type=int, metavar="N", help="processes (default: one per processor, one below 200 files)")
