"""The flags and output formats of `gpugate check`."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.structs import Struct, replace
from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.identity import add_identity
from gpugate.webhook.cli.options import Parser, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.report.located import Report
    from gpugate.webhook.report.plain import When
    from gpugate.webhook.report.view import View

FORMATS: Final = ("text", "concise", "json", "github", "gitlab", "sarif", "junit", "markdown")


class ReportWriter(Struct, frozen=True):
    """A report, and the data that output formats need in addition."""

    report: Report
    policies: Sequence[Policy]
    view: View
    color: When = "auto"

    def write(self, name: str, file: str) -> str:
        """Write the report in a format, for a file or, where that is empty, for standard output."""
        report, root = self.report, Path.cwd()
        module = import_module(f"gpugate.webhook.report.{name}")
        text: str
        if name == "text":
            # Errors stay readable on a terminal, however many other findings there are.
            brief = _is_terminal(file) and not self.view.verbose
            text = module.write(report, self._paint(file), replace(self.view, brief=brief))
        elif name == "concise":
            text = module.write(report, self.view)
        elif name == "sarif":
            text = module.write(report, self.policies, root, suppressed=self.view.suppressed, docs=self.view.docs)
        elif name == "github":
            text = module.write(report, root)
        elif name == "gitlab":
            text = module.write(report, root, Path(os.environ.get("CI_PROJECT_DIR") or root))
        elif name == "json":
            text = module.write(report, self.view.docs)
        else:
            text = module.write(report, self.view.seconds)
        return text

    def _paint(self, file: str) -> object:
        from gpugate.webhook.report import plain  # noqa: PLC0415 -- only this format has colors

        return plain.Paint(plain.wanted(self.color, is_terminal=_is_terminal(file), environment=os.environ))


def _is_terminal(file: str) -> bool:
    return not file and sys.stdout.isatty()


def add_selection(command: argparse.ArgumentParser) -> None:
    """Add the flags that select files."""
    group = command.add_argument_group("file selection")
    add = group.add_argument
    add(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="exclude files and directories: a name at any depth, or a path with * and **; repeatable",
    )
    add(
        "--force-exclude",
        action="store_true",
        help="apply --exclude also to files given as PATH, and skip files that are not manifests; for hooks",
    )
    add("--no-respect-gitignore", action="store_true", help="also read files that git ignores")
    add(
        "--changed-since",
        metavar="REF",
        help="check only files that changed since the merge base of HEAD and REF, and what is rendered from them",
    )
    add(
        "--context-from",
        action="append",
        default=[],
        metavar="PATH",
        help="use the objects of a dump, file or directory as cluster data, without checking them; repeatable",
    )
    add("--stdin-filename", metavar="NAME", help="name of standard input in reports")


def add_rendering(command: argparse.ArgumentParser) -> None:
    """Add the flags for charts and kustomizations."""
    group = command.add_argument_group("charts and kustomizations")
    add = group.add_argument
    add(
        "-k",
        "--kustomize",
        action="append",
        default=[],
        metavar="DIR",
        help="build this kustomization; gpugate finds those below PATH itself; repeatable",
    )
    add(
        "--helm",
        action="append",
        default=[],
        metavar="CHART",
        help="render this chart, a directory or archive; gpugate finds those below PATH itself; repeatable",
    )
    add(
        "--values",
        action="append",
        default=[],
        metavar="FILE",
        help="values file of the chart; repeatable, the last one wins",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="K=V",
        help="set a value of the chart, as `helm --set` does; repeatable",
    )
    add("--release", metavar="NAME", help="name of the release (default: name of the chart's directory)")
    add("--kube-version", metavar="V", help="Kubernetes version for charts (default: that of the policy file's target)")
    add("--enable-helm", action="store_true", help="allow kustomizations to render Helm charts")
    add(
        "--no-render",
        action="store_true",
        help="render nothing: read files outside of charts, and files of kustomizations, as they are",
    )
    add(
        "--render-timeout",
        type=seconds,
        default=60.0,
        metavar="TIME",
        help="time limit of one rendering, such as 90s or 5m (default: 60s)",
    )


_EPILOG: Final = """examples:
  gpugate check clusters/ apps/
  gpugate check --helm charts/vllm --values prod.yaml
  gpugate check . --changed-since origin/main -o github
  gpugate check . -o text -o sarif=gpugate.sarif
  gpugate check . --diff
  gpugate check . --select 'nodepools/*' --fix

A comment `# gpugate: ignore[ID, ID] reason` suppresses findings on its line. On a
line of its own, it suppresses findings on the next line. A suppression with
`until=2027-03-31` in its reason ends after that day."""


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate check",
        description="Check manifests on disk as the webhook would evaluate them. Reads files and uses no network.",
        epilog=_EPILOG,
    )
    _add_inputs(command)
    add_selection(command)
    add_rendering(command)
    _add_policies(command)
    _add_baseline(command)
    _add_schemas(command)
    _add_fixes(command)
    _add_output(command)
    project_flags.add_own_policies(command)
    project_flags.add(command)
    project_flags.add_trust(command)
    return command


def _add_inputs(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("input")
    command.add_argument(
        "path",
        nargs="*",
        metavar="PATH",
        help="file, directory, pattern, chart or kustomization; - for standard input (default: .)",
    )
    add = group.add_argument
    add("-f", "--filename", action="append", default=[], metavar="PATH", help="same as PATH, for users of kubectl")
    add(
        "-n",
        "--namespace",
        default="default",
        metavar="NAME",
        help="namespace of objects without one (default: default)",
    )
    add(
        "--complete-context",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="treat the input as the complete cluster state",
    )


def _add_policies(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("policies")
    options.add_policy_file(group, options.OF_THE_PROJECT)
    add_identity(group)
    options.add_catalogue(group)
    add = group.add_argument
    add(
        "--select", action="append", default=[], metavar="ID", help="run only these policies; ID or pattern, repeatable"
    )
    add("--ignore", action="append", default=[], metavar="ID", help="skip these policies; ID or pattern, repeatable")
    add(
        "--no-ignores",
        action="store_true",
        help="disregard `# gpugate: ignore[ID] reason` comments and the baseline",
    )
    add(
        "--as-mode",
        choices=("enforce", "as-is"),
        default="as-is",
        help="disregard the global mode of the policy file, so that a file with `mode: audit` also checks pull requests "
        "(enforce), or keep it (as-is, the default)",
    )
    add(
        "--fail-on",
        choices=("deny", "mutate", "warn", "never"),
        default="deny",
        help="exit with 1 on denials (deny, the default), also on patches (mutate), also on warnings (warn), or never",
    )


def _add_baseline(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("baseline")
    add = group.add_argument
    add("--baseline", type=Path, metavar="FILE", help="hide the findings that this file records; only new ones count")
    add("--write-baseline", type=Path, metavar="FILE", help="record the current findings; .json, .yaml or .yml")
    add("--prune-baseline", action="store_true", help="remove entries without a finding from the baseline")


def _add_schemas(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("schemas")
    add = group.add_argument
    folder = "folder of additional schemas, written by `gpugate schema add` (default: .gpugate/schemas, if it exists)"
    add("--schemas", type=Path, metavar="DIR", help=folder)
    add("--no-schemas", action="store_true", help="skip CRD and core schema validation")


def _add_fixes(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("fixes")
    either = group.add_mutually_exclusive_group()
    either.add_argument("--fix", action="store_true", help="apply safe fixes and the patches of mutating policies")
    either.add_argument(
        "--diff", action="store_true", help="print the changes of --fix as a diff, without writing them"
    )
    group.add_argument(
        "--unsafe-fixes",
        action="store_true",
        help="also apply fixes that may change scheduling or cost, or add objects",
    )


def _add_output(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("output")
    add = group.add_argument
    formats = ", ".join(FORMATS[1:])
    add(
        "-o",
        "--output",
        action="append",
        metavar="FMT[=FILE]",
        help=f"output format: text (default), {formats}; repeatable",
    )
    add(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="use colors (default: auto, which honors NO_COLOR and FORCE_COLOR)",
    )
    add("--show-suppressed", action="store_true", help="list suppressed findings, with the reason")
    add(
        "--show-skipped",
        action="store_true",
        help="list skipped parts of the input (non-manifests, templates, hidden directories), with the reason",
    )
    length = group.add_mutually_exclusive_group()
    length.add_argument("-q", "--quiet", action="store_true", help="print only findings, without the summary")
    length.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print all findings in full, also on a terminal, with all their places and all reasons why policies were not evaluated",
    )
    length.add_argument("--summary", action="store_true", help="print only the counts by policy and the summary")
    add("--statistics", action="store_true", help="print the number of findings of each policy at the end")
    add("--group-by", choices=("policy", "file", "object"), help="group findings, the worst group first")
    add(
        "--max-findings",
        type=options.count,
        metavar="N",
        help="print only the N worst findings; the exit code and the counts cover all",
    )
    add(
        "--allow-empty",
        action="store_true",
        help="exit with 0 instead of 3 if there is nothing to check; for hooks",
    )
    add(
        "-j",
        "--jobs",
        type=options.count,
        metavar="N",
        help="number of processes (default: one per CPU; 1 for fewer than 200 files)",
    )
