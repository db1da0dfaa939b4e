"""The flags and output formats of `gpugate check`."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.options import Parser, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.report.located import Report
    from gpugate.webhook.report.plain import When
    from gpugate.webhook.report.view import View

FORMATS: Final = ("text", "concise", "json", "github", "gitlab", "sarif", "junit", "markdown")


@dataclass(frozen=True, slots=True)
class Shown:
    """A report with what the formats need beside it."""

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
            # A terminal scrolls: what is an error stays readable there, however much else is reported.
            brief = _is_terminal(file) and not self.view.verbose
            text = module.write(report, self._paint(file), replace(self.view, brief=brief))
        elif name == "concise":
            text = module.write(report, self.view)
        elif name == "sarif":
            text = module.write(report, self.policies, root, suppressed=self.view.suppressed)
        elif name == "github":
            text = module.write(report, root)
        elif name == "gitlab":
            text = module.write(report, root, Path(os.environ.get("CI_PROJECT_DIR") or root))
        elif name == "json":
            text = module.write(report)
        else:
            text = module.write(report, self.view.seconds)
        return text

    def _paint(self, file: str) -> object:
        from gpugate.webhook.report import plain  # noqa: PLC0415 -- only this format has colours

        return plain.Paint(plain.wanted(self.color, is_terminal=_is_terminal(file), environment=os.environ))


def _is_terminal(file: str) -> bool:
    return not file and sys.stdout.isatty()


def add_selection(made: argparse.ArgumentParser) -> None:
    """Add the flags that choose among files."""
    group = made.add_argument_group("choice of files")
    add = group.add_argument
    add(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="leave out files and directories: a name at any depth, or a path with * and **; repeatable",
    )
    add(
        "--force-exclude",
        action="store_true",
        help="a hook names the files: leave these out too, and pass over non-manifests",
    )
    add("--no-respect-gitignore", action="store_true", help="read also what git ignores")
    add(
        "--changed-since",
        metavar="REF",
        help="only files that differ from what HEAD has in common with REF, and what is rendered from them",
    )
    add(
        "--context-from",
        action="append",
        default=[],
        metavar="PATH",
        help="objects that policies may look up and that are not judged: a dump, files or directories; repeatable",
    )
    add("--stdin-filename", metavar="NAME", help="the name that reports give to standard input")


def add_rendering(made: argparse.ArgumentParser) -> None:
    """Add the flags for charts and kustomizations."""
    group = made.add_argument_group("charts and kustomizations")
    add = group.add_argument
    add(
        "-k",
        "--kustomize",
        action="append",
        default=[],
        metavar="DIR",
        help="build this kustomization; those below PATH are found without it; repeatable",
    )
    add(
        "--helm",
        action="append",
        default=[],
        metavar="CHART",
        help="render this chart, a directory or archive; those below PATH are found without it; repeatable",
    )
    add(
        "--values",
        action="append",
        default=[],
        metavar="FILE",
        help="values of the chart; repeatable, the last one wins",
    )
    add("--set", action="append", default=[], metavar="K=V", help="one value of the chart, as `helm --set`; repeatable")
    add("--release", metavar="NAME", help="the name of the release (default: that of the chart's directory)")
    add("--kube-version", metavar="V", help="the Kubernetes version that charts see (default: the target's)")
    add("--enable-helm", action="store_true", help="let kustomizations inflate the Helm charts that they name")
    add(
        "--no-render",
        action="store_true",
        help="read the files beside charts, and those of kustomizations, as they are",
    )
    add(
        "--render-timeout",
        type=seconds,
        default=60.0,
        metavar="TIME",
        help="how long one rendering may take, such as 90s or 5m (default: 60s)",
    )


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
    add_selection(made)
    add_rendering(made)
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
    add(
        "--show-skipped",
        action="store_true",
        help="list the parts that were passed over, with the reason: non-manifests, templates, hidden directories",
    )
    length = group.add_mutually_exclusive_group()
    length.add_argument("-q", "--quiet", action="store_true", help="print findings only, no summary")
    length.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print every finding in full, also on a terminal, and every reason why a policy was not evaluated",
    )
    length.add_argument("--summary", action="store_true", help="print only the counts by policy and the summary")
    add("--statistics", action="store_true", help="end with the number of findings of each policy, worst first")
    add("--group-by", choices=("policy", "file", "object"), help="group findings, worst group first")
    add(
        "--max-findings",
        type=_count,
        metavar="N",
        help="print only the N worst findings; exit code and counts are about all",
    )
    add("--exit-zero", action="store_true", help="exit with 0 also if findings would deny an object")
    add(
        "--allow-empty",
        action="store_true",
        help="exit with 0, not 3, where there is nothing to check, as with the changed files of a commit",
    )
    add(
        "-j", "--jobs", type=_processes, metavar="N", help="processes (default: one per processor, one below 200 files)"
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"invalid number {text!r}: write 1 or more")
    return int(text)


def _processes(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes; write 1 or more")
    return int(text)
