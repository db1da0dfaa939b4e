"""`gpugate check`: what admission would do with manifests on disk."""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.run import CheckResult, check
from gpugate.webhook.check.session import LocalSession
from gpugate.webhook.cli import options
from gpugate.webhook.cli.check_flags import parser
from gpugate.webhook.cli.formats import FORMATS, Shown
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cli.progress import MANY_FILES, progress
from gpugate.webhook.cli.selection import selected
from gpugate.webhook.manifests.inputs import Input, Passed, expand
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.check.session import Session

_Found = list[Input | Problem | Passed]
_FILES_PER_PROCESS = 100  # fewer are read before a process has started


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    started = time.perf_counter()
    args = parser().parse_args(arguments)
    paths = [*args.path, *args.filename] or ["."]
    wanted = options.outputs(args.output or ([] if args.diff else ["text"]), FORMATS)
    _refuse(args, wanted)
    known = [policy.id for policy in CATALOG]
    only = selected(known, args.select, args.ignore)
    ruleset = options.ruleset(args.policy_file, only)
    how = Options(
        today=dt.datetime.now(dt.UTC).date(),
        namespace=args.namespace,
        complete_context=args.complete_context,
        min_stance=Stance[args.min_mode.upper()],
        known=frozenset(known),
        ignores=not args.no_ignores,
    )
    found = _expanded(paths, args)
    result = _checked(found, ruleset, how, only, args)
    if args.fix or args.diff:
        result = _mended(found, result, ruleset, how, only, args)
    policies = [rule.policy for rule in ruleset.rules]
    shown = Shown(result.report, policies, time.perf_counter() - started, args.color, args.quiet)
    for file, name in wanted.items():
        options.write(file, shown.write(name, file))
    return result.exit_code


def _refuse(args: argparse.Namespace, wanted: dict[str, str]) -> None:
    if args.unsafe_fixes and not (args.fix or args.diff):
        raise UsageError("--unsafe-fixes says which changes --fix or --diff make: add one of them")
    if args.diff and "" in wanted:
        raise UsageError(f"-o {wanted['']}: standard output gets the diff; add =FILE")


def _expanded(paths: Sequence[str], args: argparse.Namespace) -> _Found:
    found = list(expand(paths))
    for index, part in enumerate(found):
        if isinstance(part, Input) and part.is_stream and (args.fix or args.diff):
            if args.fix:
                raise UsageError(f"--fix cannot write to {part.label}; use --diff")
            data = part.read()
            found[index] = data if isinstance(data, Problem) else replace(part, data=data)
    return found


def _checked(
    found: _Found, ruleset: Ruleset, how: Options, only: frozenset[str] | None, args: argparse.Namespace
) -> CheckResult:
    files = sum(isinstance(part, Input) for part in found)
    session: Session = LocalSession(ruleset, how)
    jobs = args.jobs or (min(_processors(), files // _FILES_PER_PROCESS) if files >= MANY_FILES else 1)
    if jobs > 1:
        from gpugate.webhook.check.workers import WorkerSession  # noqa: PLC0415 -- costs start-up time

        session = WorkerSession(jobs, ruleset.config, only, how, LocalSession(ruleset, how))
    # After the processes are started, because a progress bar has a thread.
    with progress(files, quiet=args.quiet) as step:
        return check(found, ruleset, how, session, step)


def _processors() -> int:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return available or 1


def _mended(
    found: _Found,
    result: CheckResult,
    ruleset: Ruleset,
    how: Options,
    only: frozenset[str] | None,
    args: argparse.Namespace,
) -> CheckResult:
    from gpugate.webhook.cli import mending  # noqa: PLC0415 -- only where something is changed

    mended = mending.mended(found, result, ruleset, how, unsafe=args.unsafe_fixes)
    if args.diff:
        sys.stdout.write(mending.diff(mended.files))
        for line in mended.left:
            print(line, file=sys.stderr)
        return replace(result, report=replace(result.report, unfixed=mended.left))
    for file in mended.files:
        mending.write(file)
    if mended.files:
        result = _checked(found, ruleset, how, only, args)
    return replace(result, report=replace(result.report, fixed=mended.changes, unfixed=mended.left))
