"""`gpugate test`: run tests of policies and manifests."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.check.fix import FixedFile
from gpugate.webhook.check.fixed_files import diff_of, write_fixed
from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.manifests.inputs import STDIN, Input, expand
from gpugate.webhook.testing.cases import CaseFileError
from gpugate.webhook.testing.collecting import Collected, Collector
from gpugate.webhook.testing.name_expression import name_expression
from gpugate.webhook.testing.results import Ending, TestReport
from gpugate.webhook.testing.run import Run, mistake, reported, run_tests
from gpugate.webhook.testing.setup import Setup
from gpugate.webhook.testing.updating import updates

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gpugate.webhook.own_policies.catalog import Catalog
    from gpugate.webhook.testing.cases import AnyCase

FORMATS: Final = ("text", "junit", "json")

_EPILOG: Final = """examples:
  gpugate test policies/
  gpugate test . -k 'taint and not spot' -x
  gpugate test . --coverage=100 -o text -o junit=gpugate-tests.xml
  gpugate test policies/nodepool.gpugate-test.yaml --update

Tests are the cases in *.gpugate-test.yaml files, the examples in documents of
the kind Policy, and manifests with comments: `# expect: ID` on the line of an
expected finding, or `# expect: nothing`.

Exit codes: 0 all tests passed; 1 a test failed, or the coverage is too low;
2 wrong usage or configuration; 3 no tests; 4 a test is invalid or cannot be
read."""


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate test",
        description="Run tests of policies and manifests. Reads files and uses no network.",
        epilog=_EPILOG,
    )
    add = command.add_argument
    add("path", nargs="*", metavar="PATH", help="file, directory or pattern (default: .)")
    add(
        "-k",
        dest="names",
        metavar="EXPR",
        help="run only tests whose file or name matches: words with `and`, `or`, `not`, ( )",
    )
    add("-x", dest="stop", action="store_true", help="stop at the first failure")
    add("--update", action="store_true", help="rewrite the expectations of failed tests, and print the diff")
    add(
        "--coverage",
        nargs="?",
        type=_percent,
        const=0.0,
        metavar="MIN",
        help="report which policies have an allowed and a denied test; fail below MIN percent (write --coverage=MIN)",
    )
    add("--require-tests", action="store_true", help="exit with 1 if a PATH contains no test")
    options.add_policy_file(command, options.OF_THE_PROJECT)
    add(
        "-o",
        "--output",
        action="append",
        metavar="FMT[=FILE]",
        help="output format: text (default), junit, json; repeatable",
    )
    add(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="use colors (default: auto, which honors NO_COLOR and FORCE_COLOR)",
    )
    add("-q", "--quiet", action="store_true", help="print only failures, without the summary")
    project_flags.add_own_policies(command)
    project_flags.add(command)
    return command


def _percent(text: str) -> float:
    try:
        percentage = float(text)
    except ValueError:
        percentage = -1.0
    if not 0 <= percentage <= 100:
        raise argparse.ArgumentTypeError(
            f"{text}: write a number from 0 to 100, as in --coverage=80, and PATH before it"
        )
    return percentage


def update(
    run: Run, setup: Setup, counted: Collection[str] | None = None
) -> tuple[Run, frozenset[tuple[str, str]], list[str]]:
    """Rewrite the expectations of the tests that failed.

    Returns:
        The run with the tests of changed files run again; file and name of those that failed before and pass now; a
        line for each test that the author must update.

    Raises:
        UsageError: a file cannot be written, or changed during the run.
    """
    changes = updates(run.failed)
    changed = [FixedFile(file.file, file.before, file.after, file.codec) for file in changes.files.values()]
    sys.stderr.write(diff_of(changed))
    for file in changed:
        write_fixed(file)
    failed = {(result.case.file, result.case.name) for result in run.failed}
    again = {
        (case.file, case.name): case
        for case in Collector().collect(Input(name, explicit=True) for name in changes.files).cases
    }
    cases = [again.get((case.file, case.name), case) for case, _ in run.results]
    anew = run_tests(cases, setup, counted=counted)
    passed = frozenset(
        (case.file, case.name)
        for case, result in anew.results
        if not isinstance(result, CaseFileError) and result.passed and (case.file, case.name) in failed
    )
    return anew, passed, changes.left


_FAILED: Final = 1
_EMPTY: Final = 3
_INCOMPLETE: Final = 4


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    started = time.perf_counter()
    args, project = project_flags.parse(parser(), "test", arguments)
    paths = list(args.path) or ["."]
    if STDIN in paths:
        raise UsageError("test does not read standard input: write the manifest to a file")
    with project.blamed():
        wanted = options.outputs(args.output or ["text"], FORMATS)
    ruleset, catalog = options.bound(args.policy_file, project.own)
    setup = Setup(ruleset.config, catalog=catalog)
    by_path = [(path, Collector().collect(expand([path]))) for path in paths]
    collected = _together([part for _, part in by_path])
    chosen, deselected = _chosen(collected, args.names)
    counted = _counted(collected.cases, catalog)
    run = run_tests(chosen, setup, stop=args.stop, counted=counted)
    updated: frozenset[tuple[str, str]] = frozenset()
    remarks = [*project.remarks, *catalog.remarks]
    if args.update and run.failed:
        run, updated, left = update(run, setup, counted)
        remarks += left
    remarks += _empty(by_path, collected, chosen)
    report = TestReport(
        cases=[reported(case, result, updated=(case.file, case.name) in updated) for case, result in run.results],
        broken=[mistake(error) for error in collected.broken],
        deselected=deselected,
        coverage=run.coverage,
        wanted=args.coverage,
        remarks=remarks,
    )
    code = _exit_code(report, require=args.require_tests and any(not part.cases for _, part in by_path))
    _write(replace(report, exit_code=code), wanted, args, time.perf_counter() - started)
    return code


def _counted(cases: Iterable[AnyCase], catalog: Catalog) -> frozenset[str] | None:
    """Return the policies that the coverage is about: those of directories if all tests are their examples, else all."""
    if not catalog.own or not all(catalog.is_example(case.file) for case in cases):
        return None
    return frozenset(own.policy.id for own in catalog.own)


def _together(parts: Sequence[Collected]) -> Collected:
    """Add up the tests of several paths; one that two of them hold counts once."""
    cases: dict[tuple[str, str], AnyCase] = {}
    broken: dict[str, Any] = {}  # Any: errors, by their text
    for part in parts:
        for case in part.cases:
            cases.setdefault((os.path.realpath(case.file), case.name), case)
        for error in part.broken:
            broken.setdefault(str(error), error)
    return Collected(list(cases.values()), list(broken.values()))


def _chosen(collected: Collected, names: str | None) -> tuple[list[AnyCase], int]:
    if names is None:
        return collected.cases, 0
    fits = name_expression(names)
    chosen = [case for case in collected.cases if fits(f"{case.file}::{case.name}")]
    return chosen, len(collected.cases) - len(chosen)


def _empty(by_path: Sequence[tuple[str, Collected]], collected: Collected, chosen: Sequence[AnyCase]) -> list[str]:
    """Say what contains no tests."""
    without = [path for path, part in by_path if not part.cases and not part.broken]
    remarks = [f"{path} contains no tests: *.gpugate-test.yaml, or manifests with `# expect: ID`" for path in without]
    if collected.cases and not chosen:
        remarks.append("-k matches no test")
    return remarks


def _exit_code(report: TestReport, *, require: bool) -> int:
    low = report.wanted is not None and report.coverage is not None and report.coverage.percent < report.wanted
    if report.count(Ending.FAILED) or low or require:
        return _FAILED
    if report.count(Ending.BROKEN) or report.broken:
        return _INCOMPLETE
    return 0 if report.cases else _EMPTY


def _write(report: TestReport, wanted: dict[str, str], args: argparse.Namespace, seconds: float) -> None:
    for file, name in wanted.items():
        if name == "junit":
            from gpugate.webhook.testing import formats as policy_test_formats  # noqa: PLC0415 -- only the format that is asked for

            text = policy_test_formats.write_junit(report, seconds)
        elif name == "json":
            from gpugate.webhook.testing import formats as policy_test_formats  # noqa: PLC0415

            text = policy_test_formats.write_json(report, seconds)
        else:
            text = _text_report(report, file, args, seconds)
        options.write(file, text)


def _text_report(report: TestReport, file: str, args: argparse.Namespace, seconds: float) -> str:
    from gpugate.webhook.report.plain import Paint, wanted  # noqa: PLC0415
    from gpugate.webhook.testing import formats as policy_test_formats  # noqa: PLC0415 -- only the format that is asked for

    paint = Paint(wanted(args.color, is_terminal=not file and sys.stdout.isatty(), environment=os.environ))
    signs = bool(file) or encoding().lower().replace("-", "").startswith("utf")
    return policy_test_formats.write_text(report, paint, quiet=args.quiet, seconds=seconds, signs=signs)


def encoding() -> str:
    """Name the encoding of standard output."""
    return sys.stdout.encoding or "ascii"
