"""`gpugate check`: what admission would do with manifests on disk."""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.run import CheckResult, check
from gpugate.webhook.check.session import LocalSession
from gpugate.webhook.cli import baselining, check_inputs, options, project_flags
from gpugate.webhook.cli.check_flags import parser
from gpugate.webhook.cli.formats import FORMATS, Shown
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cli.progress import MANY_FILES, progress
from gpugate.webhook.cli.selection import selected
from gpugate.webhook.manifests.inputs import Found, Input
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.project.settle import Source

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.check.session import Session
    from gpugate.webhook.cli.baselining import Baselining
    from gpugate.webhook.cli.check_inputs import Gathered
    from gpugate.webhook.cli.project_flags import Project

_EMPTY = 3
_FILES_PER_PROCESS = 100  # fewer are read before a process has started


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    started = time.perf_counter()
    _refuse_files_like_flags(arguments)
    args, project = project_flags.parse(parser(), "check", arguments)
    with project.blamed():
        wanted = options.outputs(_outputs(args, project), FORMATS)
    _refuse(args, wanted)
    result, ruleset = judged(args, project)
    policies = [rule.policy for rule in ruleset.rules]
    shown = Shown(result.report, policies, time.perf_counter() - started, args.color, args.quiet, args.show_suppressed)
    for file, name in wanted.items():
        options.write(file, shown.write(name, file))
    return 0 if args.allow_empty and result.exit_code == _EMPTY else result.exit_code


def _refuse_files_like_flags(arguments: Sequence[str]) -> None:
    """Refuse what may be a file of a change in the place of a flag: a hook appends the names of files to its arguments.

    Raises:
        UsageError: an argument begins with a dash and a file has its name.
    """
    if "--force-exclude" not in arguments or "--" in arguments:
        return
    found = next((each for each in arguments if len(each) > 1 and each[0] == "-" and os.path.lexists(each)), None)
    if found is not None:
        raise UsageError(f"{found}: a file is called like this flag: end the arguments of the hook with `--`")


def judged(args: argparse.Namespace, project: Project) -> tuple[CheckResult, Ruleset]:
    """Judge what the flags and the project name, mend it where they ask for that, and return what was found.

    Raises:
        GpugateError: they do not fit together, or a file of theirs is refused.
    """
    paths = _paths(args, project)
    known = [policy.id for policy in CATALOG]
    with project.blamed():
        only = selected(known, args.select, args.ignore)
    baseline = baselining.asked(args, project.base)
    ruleset = options.ruleset(args.policy_file, only, project.base)
    with _schemas(args, project) as schema_folder:
        result = _judged(paths, args, ruleset, only, baseline, schema_folder)
    new: tuple[str, ...] = ()
    if project.base is not None:
        from gpugate.webhook.check.ignores import added  # noqa: PLC0415 -- few runs have a base

        new = added(result.report, project.base)
    remarks = (*project.remarks, *new, *result.report.remarks)
    return replace(result, report=replace(result.report, remarks=remarks)), ruleset


@contextmanager
def _schemas(args: argparse.Namespace, project: Project) -> Iterator[Path | None]:
    """Give the folder of further schemas, for as long as it is needed."""
    if project.base is None:
        with project.blamed():
            folder = options.schema_folder(args.schemas)
        yield folder
        return
    from gpugate.webhook.project.base import folder_of  # noqa: PLC0415 -- few runs have a base
    from gpugate.webhook.schemas.tables import FOLDER  # noqa: PLC0415

    with folder_of(project.base, args.schemas, FOLDER) as folder:
        yield options.schema_folder(folder) if folder else None


def _judged(
    paths: list[str],
    args: argparse.Namespace,
    ruleset: Ruleset,
    only: frozenset[str] | None,
    baseline: Baselining,
    schema_folder: Path | None,
) -> CheckResult:
    how = Options(
        today=dt.datetime.now(dt.UTC).date(),
        namespace=args.namespace,
        complete_context=args.complete_context,
        min_stance=Stance[args.min_mode.upper()],
        known=frozenset(policy.id for policy in CATALOG),
        ignores=not args.no_ignores,
        schemas=not args.no_schemas,
        schema_folder=schema_folder,
        whole=args.changed_since is None and not all(path == "-" or Path(path).is_file() for path in paths),
    )
    gathered = check_inputs.gathered(paths, args, ruleset.config.target.kubernetes, args.jobs or _processors())
    gathered = replace(gathered, found=_kept(gathered.found, args))
    result = baseline.hidden(_checked(gathered, ruleset, how, only, args), how.min_stance)
    if args.fix or args.diff:
        result = _mended(gathered, result, ruleset, how, only, args)
    result = baseline.finished(result, how.min_stance)
    remarks = (*gathered.remarks, *result.report.remarks)
    return replace(result, report=replace(result.report, remarks=remarks))


def _paths(args: argparse.Namespace, project: Project) -> list[str]:
    if (args.kustomize or args.helm) and project.settings["paths"].source is not Source.FLAG:
        return []  # what flags name to be rendered is meant, not the project
    return [*args.path, *args.filename] or ["."]


def _outputs(args: argparse.Namespace, project: Project) -> list[str]:
    if args.diff and project.settings["output"].source is not Source.FLAG:
        # A project that wants a report on standard output gets the diff there now.
        return [output for output in args.output or () if "=" in output]
    return args.output or ([] if args.diff else ["text"])


def _refuse(args: argparse.Namespace, wanted: dict[str, str]) -> None:
    if args.unsafe_fixes and not (args.fix or args.diff):
        raise UsageError("--unsafe-fixes says which changes --fix or --diff make: add one of them")
    if args.diff and "" in wanted:
        raise UsageError(f"-o {wanted['']}: standard output gets the diff; add =FILE")


def _kept(found: list[Found], args: argparse.Namespace) -> list[Found]:
    """Keep what can be read only once, where it is read for fixes too."""
    for index, part in enumerate(found):
        if isinstance(part, Input) and part.is_stream and (args.fix or args.diff):
            if args.fix:
                raise UsageError(f"--fix cannot write to {part.label}; use --diff")
            data = part.read()
            found[index] = data if isinstance(data, Problem) else replace(part, data=data)
    return found


def _checked(
    gathered: Gathered, ruleset: Ruleset, how: Options, only: frozenset[str] | None, args: argparse.Namespace
) -> CheckResult:
    files = sum(isinstance(part, Input) for part in gathered.found)
    session: Session = LocalSession(ruleset, how)
    jobs = args.jobs or (min(_processors(), files // _FILES_PER_PROCESS) if files >= MANY_FILES else 1)
    if jobs > 1:
        from gpugate.webhook.check.workers import WorkerSession  # noqa: PLC0415 -- costs start-up time

        session = WorkerSession(jobs, ruleset.config, only, how, LocalSession(ruleset, how))
    # After the processes are started, because a progress bar has a thread.
    with progress(files, quiet=args.quiet) as step:
        return check(gathered.found, ruleset, how, session, step, gathered.beside)


def _processors() -> int:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return available or 1


def _mended(
    gathered: Gathered,
    result: CheckResult,
    ruleset: Ruleset,
    how: Options,
    only: frozenset[str] | None,
    args: argparse.Namespace,
) -> CheckResult:
    from gpugate.webhook.cli import mending  # noqa: PLC0415 -- only where something is changed

    mended = mending.mended(gathered.found, result, ruleset, how, unsafe=args.unsafe_fixes)
    if args.diff:
        sys.stdout.write(mending.diff(mended.files))
        for line in mended.left:
            print(line, file=sys.stderr)
        return replace(result, report=replace(result.report, unfixed=mended.left))
    for file in mended.files:
        mending.write(file)
    if mended.files:
        result = _checked(gathered, ruleset, how, only, args)
    return replace(result, report=replace(result.report, fixed=mended.changes, unfixed=mended.left))
