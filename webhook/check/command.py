"""`gpugate check`: report what admission would do with manifests on disk."""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.policies.sdk.structs import Struct, replace
from gpugate.webhook.check.fixed_files import diff_of, fix_files, fixes_of, write_fixed
from gpugate.webhook.check.flags import FORMATS, ReportWriter, parser
from gpugate.webhook.check.gathering import gather_inputs
from gpugate.webhook.check.options import FailOn, Options
from gpugate.webhook.check.run import CheckResult, check
from gpugate.webhook.check.session import LocalSession
from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.identity import cluster_of
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cli.progress import MANY_FILES, progress
from gpugate.webhook.cli.selection import selected
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.project.settle import Source
from gpugate.webhook.report.view import View

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.check.baseline import Baseline
    from gpugate.webhook.check.gathering import Gathered
    from gpugate.webhook.check.session import Session
    from gpugate.webhook.cli.project_flags import Project
    from gpugate.webhook.manifests.git import Revision
    from gpugate.webhook.manifests.inputs import Found
    from gpugate.webhook.own_policies.catalog import Catalog


class Baselining(Struct, frozen=True):
    """The baseline that hides findings, and whether to prune it; or the file to write all findings to."""

    known: Baseline | None = None
    write: Path | None = None
    prune: bool = False

    def hidden(self, result: CheckResult, fail_on: FailOn) -> CheckResult:
        """Return the result without findings in the baseline; applied twice, the second has no effect."""
        if self.known is None or result.report.baseline is not None:
            return result
        return _hidden(result, self.known, fail_on)

    def finished(self, result: CheckResult, fail_on: FailOn) -> CheckResult:
        """Apply the baseline if it was not applied yet, and write the files of the flags.

        Raises:
            UsageError: the file cannot be written; it is unchanged then.
        """
        if self.write is not None:
            from gpugate.webhook.check import baseline  # noqa: PLC0415 -- few runs write one

            current = baseline.made_of(str(self.write), result.report.findings)
            _write(current)
            return _hidden(result, current, fail_on)
        result = self.hidden(result, fail_on)
        remark = self._prune(result) if self.prune else ""
        remarks = (*result.report.remarks, *([remark] if remark else ()))
        return replace(result, report=replace(result.report, remarks=remarks))

    def _prune(self, result: CheckResult) -> str:
        from gpugate.webhook.check import baseline  # noqa: PLC0415 -- few runs have one
        from gpugate.webhook.check.run import INCOMPLETE  # noqa: PLC0415

        use = result.report.baseline
        if self.known is None or use is None:
            return ""
        if any(finding.sort in INCOMPLETE for finding in result.report.findings):
            return f"{self.known.file}: not pruned, because an input could not be read or evaluated"
        left = baseline.pruned(self.known, use)
        if left.counts == self.known.counts:
            return ""
        _write(left)
        return f"{self.known.file}: pruned: {len(left.counts)} of {len(self.known.counts)} entries remain"


def _hidden(result: CheckResult, known: Baseline, fail_on: FailOn) -> CheckResult:
    from gpugate.webhook.check import baseline  # noqa: PLC0415 -- few runs have one
    from gpugate.webhook.check.run import exit_code  # noqa: PLC0415

    report = baseline.hidden(result.report, known, result.coverage)
    code = exit_code(report.findings, report.objects, fail_on)
    return replace(result, report=replace(report, exit_code=code))


def requested_baseline(args: argparse.Namespace, base: Revision | None = None) -> Baselining:
    """Return what flags and project ask for; with a base revision a baseline of its repository is read from there.

    Raises:
        GpugateError: they do not fit together, or the baseline cannot be read.
    """
    if not (args.baseline or args.write_baseline or args.prune_baseline):
        return Baselining()
    from gpugate.webhook.check.baseline import SUFFIXES, read_baseline  # noqa: PLC0415 -- few runs have one

    if base is not None and (args.write_baseline is not None or args.prune_baseline):
        raise UsageError("--trust base: a baseline is read from the base; write or prune one without it")
    if args.write_baseline is not None:
        if args.prune_baseline:
            raise UsageError("--prune-baseline: leave it out; --write-baseline writes only current findings")
        if args.write_baseline.suffix not in SUFFIXES:
            raise UsageError(f"--write-baseline {args.write_baseline}: end the name in {', '.join(SUFFIXES)}")
        return Baselining(write=args.write_baseline)
    if args.baseline is None:
        raise UsageError("--prune-baseline: name the baseline with --baseline FILE")
    if args.no_ignores:
        if args.prune_baseline:
            raise UsageError("--prune-baseline: leave out --no-ignores, with which no baseline is read")
        return Baselining()
    data = None
    if base is not None:
        from gpugate.webhook.manifests.bounded_file import MAX_BYTES  # noqa: PLC0415 -- few runs have a base
        from gpugate.webhook.project.base import read_from  # noqa: PLC0415

        data = read_from(base, args.baseline, MAX_BYTES)
    return Baselining(read_baseline(args.baseline, data), prune=args.prune_baseline)


def _write(known: Baseline) -> None:
    from gpugate.webhook.check.baseline import written  # noqa: PLC0415 -- few runs write one

    options.write(known.file, written(known))


_EMPTY = 3
_FILES_PER_PROCESS = 100  # fewer files take less time than the start of a process


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    started = time.perf_counter()
    _refuse_files_like_flags(arguments)
    args, project = project_flags.parse(parser(), "check", arguments)
    with project.blamed():
        wanted = options.outputs(_outputs(args, project), FORMATS)
    _refuse(args, wanted)
    result, ruleset = check_project(args, project)
    policies = [rule.policy for rule in ruleset.rules]
    view = View(
        quiet=args.quiet,
        seconds=time.perf_counter() - started,
        suppressed=args.show_suppressed,
        skipped=args.show_skipped,
        verbose=args.verbose,
        group_by=args.group_by,
        most=args.max_findings,
        statistics=args.statistics or args.summary,
        findings=not args.summary,
        docs=args.docs.base_url if args.docs else "",
    )
    writer = ReportWriter(result.report, policies, view, args.color)
    for file, name in wanted.items():
        options.write(file, writer.write(name, file))
    passing = {_EMPTY} if args.allow_empty else set()
    return 0 if result.exit_code in passing else result.exit_code


def _refuse_files_like_flags(arguments: Sequence[str]) -> None:
    """Refuse flags that are also names of files. A hook appends file names to its arguments, and one may look like a flag.

    Raises:
        UsageError: a file has the name of a flag.
    """
    if "--force-exclude" not in arguments or "--" in arguments:
        return
    flag = next((flag for flag in arguments if len(flag) > 1 and flag[0] == "-" and os.path.lexists(flag)), None)
    if flag is not None:
        raise UsageError(f"{flag}: a file has the name of this flag: end the arguments of the hook with `--`")


def check_project(args: argparse.Namespace, project: Project) -> tuple[CheckResult, Ruleset]:
    """Check the input of the flags and the project, apply fixes if requested, and return the result.

    Raises:
        GpugateError: the flags contradict each other, or a file is invalid.
    """
    paths = _paths(args, project)
    baseline = requested_baseline(args, project.base)
    with project.blamed():
        ruleset, catalog = options.bound(
            args.policy_file,
            project.own,
            lambda ids: selected(ids, args.select, args.ignore),
            project.base,
            options.Overrides(None if args.as_mode == "as-is" else args.as_mode, args.catalogue, cluster_of(args)),
        )
    # Denied examples would be findings of every check of the repository. `gpugate test` evaluates them.
    args.exclude = [
        *args.exclude,
        *(folder for folder in catalog.examples if not any(_is_below(path, folder) for path in paths)),
    ]
    with _schemas(args, project) as schema_folder:
        result = _check_inputs(paths, args, ruleset, catalog, baseline, schema_folder)
    new: tuple[str, ...] = ()
    if project.base is not None:
        from gpugate.webhook.check.ignores import added  # noqa: PLC0415 -- few runs have a base

        new = added(result.report, project.base)
    remarks = (*project.remarks, *catalog.remarks, *new, *result.report.remarks)
    return replace(result, report=replace(result.report, remarks=remarks)), ruleset


def _is_below(path: str, folder: str) -> bool:
    return Path(path).absolute().is_relative_to(Path(folder).absolute())


@contextmanager
def _schemas(args: argparse.Namespace, project: Project) -> Iterator[Path | None]:
    """Yield the folder of additional schemas."""
    if project.base is None:
        with project.blamed():
            folder = options.schema_folder(args.schemas)
        yield folder
        return
    from gpugate.webhook.project.base import folder_of  # noqa: PLC0415 -- few runs have a base
    from gpugate.webhook.schemas.tables import FOLDER  # noqa: PLC0415

    with folder_of(project.base, args.schemas, FOLDER) as folder:
        yield options.schema_folder(folder) if folder else None


def _check_inputs(
    paths: list[str],
    args: argparse.Namespace,
    ruleset: Ruleset,
    catalog: Catalog,
    baseline: Baselining,
    schema_folder: Path | None,
) -> CheckResult:
    how = Options(
        today=dt.datetime.now(dt.UTC).date(),
        namespace=args.namespace,
        complete_context=args.complete_context,
        fail_on=FailOn(args.fail_on),
        known=catalog.known,
        ignores=not args.no_ignores,
        schemas=not args.no_schemas,
        schema_folder=schema_folder,
        templates=args.templates,
        whole=args.changed_since is None and not all(path == "-" or Path(path).is_file() for path in paths),
    )
    gathered = gather_inputs(paths, args, ruleset.config.target.kubernetes, args.jobs or _processors())
    gathered = replace(gathered, inputs=_with_stream_contents(gathered.inputs, args))
    result = baseline.hidden(_checked(gathered, ruleset, how, catalog, args), how.fail_on)
    if args.fix or args.diff:
        fixing = partial(_checked, ruleset=ruleset, how=how, catalog=catalog, args=args)
        result = _apply_fixes(
            gathered, result, lambda files: baseline.hidden(fixing(files), how.fail_on), ruleset, how, args
        )
    result = baseline.finished(result, how.fail_on)
    remarks = (*gathered.remarks, *result.report.remarks)
    return replace(result, report=replace(result.report, remarks=remarks))


def _paths(args: argparse.Namespace, project: Project) -> list[str]:
    if (args.kustomize or args.helm) and project.settings["paths"].source is not Source.FLAG:
        return []  # the flags select charts or kustomizations in place of the project
    return [*args.path, *args.filename] or ["."]


def _outputs(args: argparse.Namespace, project: Project) -> list[str]:
    if args.diff and project.settings["output"].source is not Source.FLAG:
        # The diff replaces the report on standard output.
        return [output for output in args.output or () if "=" in output]
    return args.output or ([] if args.diff else ["text"])


def _refuse(args: argparse.Namespace, wanted: dict[str, str]) -> None:
    if args.unsafe_fixes and not (args.fix or args.diff):
        raise UsageError("--unsafe-fixes requires --fix or --diff")
    if args.diff and "" in wanted:
        raise UsageError(f"-o {wanted['']}: standard output gets the diff; add =FILE")


def _with_stream_contents(inputs: list[Found], args: argparse.Namespace) -> list[Found]:
    """Store the contents of streams, which can be read only once, if fixes need them."""
    for index, part in enumerate(inputs):
        if isinstance(part, Input) and part.is_stream and (args.fix or args.diff):
            if args.fix:
                raise UsageError(f"--fix cannot write to {part.label}; use --diff")
            data = part.read()
            inputs[index] = data if isinstance(data, Problem) else replace(part, data=data)
    return inputs


def _checked(
    gathered: Gathered, ruleset: Ruleset, how: Options, catalog: Catalog, args: argparse.Namespace
) -> CheckResult:
    files = sum(isinstance(part, Input) for part in gathered.inputs)
    session: Session = LocalSession(ruleset, how)
    jobs = args.jobs or (min(_processors(), files // _FILES_PER_PROCESS) if files >= MANY_FILES else 1)
    if jobs > 1:
        from gpugate.webhook.check.workers import WorkerSession  # noqa: PLC0415 -- costs start-up time

        session = WorkerSession(jobs, ruleset, catalog, how, LocalSession(ruleset, how))
    # The progress bar starts a thread, so the processes are started first.
    with progress(files, quiet=args.quiet) as step:
        return check(gathered.inputs, ruleset, how, session, step, gathered.beside)


def _processors() -> int:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return available or 1


def _apply_fixes(
    gathered: Gathered,
    result: CheckResult,
    check_again: Callable[[Gathered], CheckResult],
    ruleset: Ruleset,
    how: Options,
    args: argparse.Namespace,
) -> CheckResult:
    """Write the fixes, or show them as a diff."""
    fixes, after = fix_files(
        gathered.inputs,
        result,
        lambda inputs, last: fixes_of(inputs, last, ruleset, how, unsafe=args.unsafe_fixes),
        lambda inputs: check_again(replace(gathered, inputs=inputs)),
    )
    if args.diff:
        sys.stdout.write(diff_of(fixes.files))
        for line in fixes.left:
            print(line, file=sys.stderr)
        return replace(result, report=replace(result.report, unfixed=fixes.left))
    for file in fixes.files:
        write_fixed(file)
    return replace(after, report=replace(after.report, fixed=fixes.changes, unfixed=fixes.left))
