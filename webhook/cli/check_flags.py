"""The flags of `gpugate check`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from gpugate.webhook.cli import check_input_flags, options, project_flags
from gpugate.webhook.cli.command_parser import Parser
from gpugate.webhook.cli.formats import FORMATS

_EPILOG: Final = """examples:
  gpugate check clusters/ apps/
  gpugate check --helm charts/vllm --values prod.yaml
  gpugate check . --changed-since origin/main -o github
  gpugate check . -o text -o sarif=gpugate.sarif
  gpugate check . --diff
  gpugate check . --select 'nodepools/*' --fix

A comment `# gpugate: ignore[ID, ID] reason` lets findings on its line pass, or on the next one when it stands alone;
with `until=2027-03-31` in the reason, until that day."""


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    made = Parser(
        prog="gpugate check",
        description="Judge manifests as admission would. Reads files and talks to no network.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_inputs(made)
    check_input_flags.add_selection(made)
    check_input_flags.add_rendering(made)
    _add_policies(made)
    _add_baseline(made)
    _add_schemas(made)
    _add_fixes(made)
    _add_output(made)
    project_flags.add(made)
    project_flags.add_trust(made)
    return made


def _add_inputs(made: argparse.ArgumentParser) -> None:
    add = made.add_argument
    add(
        "path",
        nargs="*",
        metavar="PATH",
        help="a file, a directory, a pattern, a chart, a kustomization, or - (default: .)",
    )
    add("-f", "--filename", action="append", default=[], metavar="PATH", help="the same as PATH, as kubectl has it")
    add("-n", "--namespace", default="default", help="the namespace of objects that name none (default: default)")
    add(
        "--complete-context",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="these are all objects of the cluster: what is missing here is missing there",
    )


def _add_policies(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("policies")
    options.add_policy_file(group, options.OF_THE_PROJECT)
    add = group.add_argument
    add("--select", action="append", default=[], metavar="ID", help="only these policies; ID or pattern, repeatable")
    add("--ignore", action="append", default=[], metavar="ID", help="without these policies; ID or pattern, repeatable")
    add(
        "--no-ignores",
        action="store_true",
        help="honour neither `# gpugate: ignore[ID] reason` in files nor the baseline",
    )
    add(
        "--min-mode",
        choices=("warn", "enforce"),
        default="enforce",
        help="exit with 1 on warnings and patches too (warn), or on denials only (enforce, the default)",
    )


def _add_baseline(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("baseline")
    add = group.add_argument
    add("--baseline", type=Path, metavar="FILE", help="hide the findings that it records; only new ones count")
    add("--write-baseline", type=Path, metavar="FILE", help="record what is found now; .json, .yaml or .yml")
    add("--prune-baseline", action="store_true", help="remove from the baseline what matches nothing any more")


def _add_schemas(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("schemas")
    add = group.add_argument
    folder = "a folder of further schemas, as `gpugate schema add` writes it (default: .gpugate/schemas, where it is)"
    add("--schemas", type=Path, metavar="DIR", help=folder)
    add("--no-schemas", action="store_true", help="do not tell what API servers refuse by the schemas of kinds")


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
    add("--show-suppressed", action="store_true", help="list what comments and the baseline let pass, with the reason")
    add("-q", "--quiet", action="store_true", help="findings only, no summary")
    add(
        "--allow-empty",
        action="store_true",
        help="exit with 0, not 3, where there is nothing to check, as with the changed files of a commit",
    )
    add(
        "-j", "--jobs", type=_processes, metavar="N", help="processes (default: one per processor, one below 200 files)"
    )


def _processes(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes; write 1 or more")
    return int(text)
