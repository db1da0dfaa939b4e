"""`gpugate check`: report what admission would do with manifests on disk."""

from __future__ import annotations

import datetime as dt
import difflib
import os
import shutil
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.check.fix import MendedFile, mend
from gpugate.webhook.check.flags import FORMATS, Shown, parser
from gpugate.webhook.check.options import FailOn, Options
from gpugate.webhook.check.run import Beside, CheckResult, check, numbered
from gpugate.webhook.check.session import LocalSession
from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cli.progress import MANY_FILES, progress
from gpugate.webhook.cli.selection import selected
from gpugate.webhook.manifests.inputs import (
    KUSTOMIZATION_FILES,
    STDIN,
    Chart,
    Found,
    Input,
    Kustomization,
    Selection,
    expand,
    sources,
)
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.project.settle import Source
from gpugate.webhook.report.plain import plain
from gpugate.webhook.report.view import View

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.check.baseline import Baseline
    from gpugate.webhook.check.session import Session
    from gpugate.webhook.cli.project_flags import Project
    from gpugate.webhook.manifests.git import Revision
    from gpugate.webhook.manifests.inputs import ObjectsInValues
    from gpugate.webhook.rendering.options import ChartValues
    from gpugate.webhook.report.located import Located


@dataclass(frozen=True, slots=True)
class Baselining:
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

            made = baseline.made_of(str(self.write), result.report.findings)
            _write(made)
            return _hidden(result, made, fail_on)
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

    report = baseline.hidden(result.report, known, result.seen)
    code = exit_code(report.findings, report.objects, fail_on)
    return replace(result, report=replace(report, exit_code=code))


def asked(args: argparse.Namespace, base: Revision | None = None) -> Baselining:
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


# CI systems that execute commands in logs set one of these.
_CI: Final = ("CI", "TF_BUILD", "TEAMCITY_VERSION")


# Each checks all files again. A fix in one file may cause a finding in another, rarely that one a third.
_PASSES: Final = 10


@dataclass(frozen=True, slots=True)
class Mended:
    """The files with changes, and a line for each fix that was not applied."""

    files: tuple[MendedFile, ...]
    left: tuple[str, ...]

    @property
    def changes(self) -> int:
        """The number of changes."""
        return sum(len(file.policies) for file in self.files)


def fix_files(
    found: Sequence[Found],
    result: CheckResult,
    fix: Callable[[Sequence[Found], CheckResult], Mended],
    again: Callable[[list[Found]], CheckResult],
) -> tuple[Mended, CheckResult]:
    """Compute the fixes of findings, also of those that another fix causes in another file. Writes no file.

    Args:
        found: the files of the run.
        result: what a check of them found.
        fix: computes the fixes of the findings of one check.
        again: checks the files with their new texts.

    Returns:
        All fixes, and what the last check found.
    """
    files = dict[str, MendedFile]()
    left: tuple[str, ...] = ()
    for _ in range(_PASSES):
        mended = fix(found, result)
        left = mended.left
        if not mended.files:
            break
        for file in mended.files:
            first = files.get(file.file.name)
            files[file.file.name] = file if first is None else first.followed_by(file)
        new = {name: file.after.encode(file.codec) for name, file in files.items()}
        found = [
            replace(part, data=new[part.name]) if isinstance(part, Input) and part.name in new else part
            for part in found
        ]
        result = again(list(found))
        if any(file.is_unfinished for file in mended.files):
            break
    else:
        left = (*left, f"fixes are incomplete after {_PASSES} passes, each of which caused another finding; run again")
    made = (files[part.name] for part in found if isinstance(part, Input) and part.name in files)
    return Mended(tuple(file for file in made if file.after != file.before), left), result


def fixes_of(
    found: Sequence[Found], result: CheckResult, ruleset: Ruleset, options: Options, *, unsafe: bool
) -> Mended:
    """Compute the fixes of the findings of one check."""
    wanted = {
        finding.place.file
        for finding in _each(result.report.findings)
        if finding.safely_fixable or (unsafe and finding.unsafely_fixable)
    }
    numbers = {number: file for number, file in numbered(found) if file.label in wanted}
    others = [fact for number, facts in result.facts if number not in numbers for fact in facts]
    files = mend(list(numbers.values()), others, ruleset, options, unsafe=unsafe)
    return Mended(
        tuple(file for file in files if file.after != file.before),
        (*(line for file in files for line in file.left), *_rendered(result)),
    )


def _each(findings: Iterable[Located]) -> Iterator[Located]:
    """Yield findings and those that were made further locations of them, which have fixes of their own."""
    for finding in findings:
        yield finding
        yield from finding.related


def _rendered(result: CheckResult) -> Iterator[str]:
    """Yield a line for each fix that does not apply, because no file contains the evaluated object."""
    for finding in _each(result.report.findings):
        if finding.place.is_template and not finding.exempt and (finding.fix or finding.patches):
            why = "the evaluated object is rendered from this file"
            if finding.place.unrendered:
                why = "its chart or kustomization was not rendered"
            elif finding.place.file.endswith(".tf"):
                why = "gpugate does not edit Terraform"
            yield f"{finding.place.where}: {finding.policy} was not fixed: {why}"


def diff_of(files: Sequence[MendedFile]) -> str:
    """Return the changes as a unified diff that `patch -p0` applies; on a terminal and in CI it is made harmless."""
    return "".join(line for file in files for line in _diff(file))


def _diff(file: MendedFile) -> Iterator[str]:
    name = file.file.label
    before, after = file.before.splitlines(keepends=True), file.after.splitlines(keepends=True)
    is_read = sys.stdout.isatty() or any(os.environ.get(name) for name in _CI)
    for line in difflib.unified_diff(before, after, name, name):
        shown = plain(line.rstrip("\r\n")) + "\n" if is_read else line
        yield shown if shown.endswith("\n") else f"{shown}\n\\ No newline at end of file\n"


def write_fixed(file: MendedFile) -> None:
    """Write a file as a whole or not at all, where it really is and with the mode that it has.

    Raises:
        UsageError: it cannot be written, or was changed by somebody else meanwhile.
    """
    target = Path(os.path.realpath(file.file.name))
    # A name that nobody can foresee: a repository might have a link there, which would be followed.
    unfinished = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
    try:
        if target.read_bytes() != file.before.encode(file.codec):
            raise UsageError(f"{file.file.label}: changed during the run; run again")
        try:
            unfinished.write_bytes(file.after.encode(file.codec))
            shutil.copymode(target, unfinished)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{file.file.label}: {(error.strerror or 'cannot be written').lower()}") from None


@dataclass(frozen=True, slots=True)
class Gathered:
    """What is to be judged, what there is to know beside it, and sentences on what could not be respected."""

    found: list[Found]
    beside: Beside
    remarks: tuple[str, ...] = ()


def gather_inputs(paths: Sequence[str], args: argparse.Namespace, kube_version: str, jobs: int) -> Gathered:
    """Expand paths, and render what is to be rendered.

    Args:
        paths: what the user named.
        args: the flags.
        kube_version: the version of Kubernetes of the target.
        jobs: how many programs may run at once.

    Raises:
        UsageError: flags do not fit together.
        GitError: git cannot say what has changed.
    """
    _refuse_flags(args)
    selection, remarks = _selection([*paths, *args.kustomize], args)
    found: list[Found | Chart | Kustomization] = list((expand if args.no_render else sources)(paths, selection))
    found += _named(args, found)
    if args.stdin_filename:
        found = [
            replace(part, shown=args.stdin_filename) if isinstance(part, Input) and part.name == STDIN else part
            for part in found
        ]
    found = [_with_objects(part, args.objects_in_values) if isinstance(part, Input) else part for part in found]
    in_terraform: tuple[ChartValues, ...] = ()
    if any(isinstance(part, Input) and part.language for part in found):
        from gpugate.webhook.rendering.terraform import configured  # noqa: PLC0415 -- few repositories have it

        read = configured(found)
        found, in_terraform = read.found, read.charts
    context, problems = _context(args)
    given = _given(args, found)
    # Flags override the project file for the same chart.
    named = {os.path.realpath(each.path) for each in given}
    charts = (*given, *(each for each in args.charts if os.path.realpath(each.path) not in named))
    named |= {os.path.realpath(each.path) for each in charts}
    charts = (*charts, *(each for each in in_terraform if os.path.realpath(each.path) not in named))
    problems += [_no_chart(each.path) for each in args.charts if not Path(each.path).exists()]
    if not any(isinstance(part, Chart | Kustomization) for part in found):
        plain = [part for part in found if not isinstance(part, Chart | Kustomization)]
        return Gathered([*plain, *problems], Beside(context), remarks)

    from gpugate.webhook.check.rendered import RenderedTexts  # noqa: PLC0415 -- costs start-up time, and few need it
    from gpugate.webhook.rendering.options import Limits, RenderOptions  # noqa: PLC0415
    from gpugate.webhook.rendering.render import rendered  # noqa: PLC0415

    options = RenderOptions(
        args.kube_version or kube_version,
        args.namespace,
        charts,
        selection.changed,
        inflate=args.enable_helm,
        jobs=jobs,
        limits=Limits(args.render_timeout),
    )
    made = rendered(found, options)
    beside = Beside(context, RenderedTexts(made.texts, options) if made.texts else None, made.not_rendered)
    return Gathered([*made.found, *problems], beside, remarks)


def _with_objects(file: Input, maps: Sequence[ObjectsInValues]) -> Input:
    """Attach the declared objects in chart values to a file."""
    objects = tuple(each for each in maps if not file.language and Selection(each.files).excludes(file.name))
    return replace(file, objects=objects) if objects else file


def _refuse_flags(args: argparse.Namespace) -> None:
    if args.no_render and (args.helm or args.kustomize or args.values or args.set):
        raise UsageError("--no-render excludes --helm, --kustomize, --values and --set")


def _selection(paths: Sequence[str], args: argparse.Namespace) -> tuple[Selection, tuple[str, ...]]:
    selection = Selection(tuple(args.exclude), args.force_exclude)
    if args.changed_since is not None:
        from gpugate.webhook.manifests.git import changed_since  # noqa: PLC0415 -- starts programs

        named = [path for path in [*paths, *args.helm] if path != STDIN and not path.startswith("/dev/")] or [os.curdir]
        selection = replace(selection, changed=changed_since(args.changed_since, named))
    directories = [] if args.no_respect_gitignore else [path for path in paths if Path(path).is_dir()]
    if not directories:
        return selection, ()

    from gpugate.webhook.manifests.git import GitError, ignored  # noqa: PLC0415 -- starts programs

    try:
        return replace(selection, ignored=ignored(directories)), ()
    except GitError as error:
        return selection, (f"files that git ignores are read too: {error}",)


def _named(args: argparse.Namespace, found: Sequence[object]) -> list[Found | Chart | Kustomization]:
    """Return the charts and kustomizations of flags that the paths do not contain."""
    named: list[Found | Chart | Kustomization] = []
    have = {os.path.realpath(part.name) for part in found if isinstance(part, Chart)}
    named += [Chart(chart) for chart in args.helm if os.path.realpath(chart) not in have]
    have = {os.path.realpath(part.name) for part in found if isinstance(part, Kustomization)}
    for directory in args.kustomize:
        file = next((name for name in KUSTOMIZATION_FILES if Path(directory, name).is_file()), None)
        if file is None:
            names = ", ".join(KUSTOMIZATION_FILES)
            named.append(Problem(directory, 0, 0, "no kustomization in this directory", f"create one of {names}"))
        elif os.path.realpath(directory) not in have:
            named.append(Kustomization(directory, file))
    return named


def _given(args: argparse.Namespace, found: Sequence[object]) -> list[ChartValues]:
    """Return the chart values of flags.

    Raises:
        UsageError: the input does not contain exactly one chart.
    """
    if not (args.values or args.set or args.release):
        return []
    charts = args.helm or [part.name for part in found if isinstance(part, Chart)]
    if len(charts) != 1:
        raise UsageError(
            f"--values, --set and --release need exactly one chart, and the input contains {len(charts)}: "
            "name it with --helm, or list values of several under `charts:` in .gpugate.yaml"
        )
    from gpugate.webhook.rendering.options import ChartValues  # noqa: PLC0415 -- few runs render a chart

    return [ChartValues(charts[0], (tuple(args.values),), tuple(args.set), args.release or "")]


def _no_chart(path: str) -> Problem:
    remedy = "correct its `path` under `charts:` in the project file, which is relative to that file"
    return Problem(path, 0, 0, "no such chart", remedy)


def _context(args: argparse.Namespace) -> tuple[tuple[Request, ...], list[Problem]]:
    if not args.context_from:
        return (), []
    from gpugate.webhook.manifests.dump_files import dumped  # noqa: PLC0415 -- costs start-up time

    requests: list[Request] = []
    problems: list[Problem] = []
    for part in dumped(args.context_from):
        if isinstance(part, Problem):
            problems.append(part)
        else:
            requests.append(part.request)
    return tuple(requests), [problem for problem in problems if not problem.warning]


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
    result, ruleset = judged(args, project)
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
    shown = Shown(result.report, policies, view, args.color)
    for file, name in wanted.items():
        options.write(file, shown.write(name, file))
    passing = {_EMPTY} if args.allow_empty else set()
    return 0 if result.exit_code in passing else result.exit_code


def _refuse_files_like_flags(arguments: Sequence[str]) -> None:
    """Refuse flags that are also names of files. A hook appends file names to its arguments, and one may look like a flag.

    Raises:
        UsageError: a file has the name of a flag.
    """
    if "--force-exclude" not in arguments or "--" in arguments:
        return
    found = next((each for each in arguments if len(each) > 1 and each[0] == "-" and os.path.lexists(each)), None)
    if found is not None:
        raise UsageError(f"{found}: a file has the name of this flag: end the arguments of the hook with `--`")


def judged(args: argparse.Namespace, project: Project) -> tuple[CheckResult, Ruleset]:
    """Check the input of the flags and the project, apply fixes if requested, and return the result.

    Raises:
        GpugateError: the flags contradict each other, or a file is invalid.
    """
    paths = _paths(args, project)
    known = [policy.id for policy in CATALOG]
    with project.blamed():
        only = selected(known, args.select, args.ignore)
    baseline = asked(args, project.base)
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
        fail_on=FailOn(args.fail_on),
        known=frozenset(policy.id for policy in CATALOG),
        ignores=not args.no_ignores,
        schemas=not args.no_schemas,
        schema_folder=schema_folder,
        templates=args.templates,
        whole=args.changed_since is None and not all(path == "-" or Path(path).is_file() for path in paths),
    )
    gathered = gather_inputs(paths, args, ruleset.config.target.kubernetes, args.jobs or _processors())
    gathered = replace(gathered, found=_kept(gathered.found, args))
    result = baseline.hidden(_checked(gathered, ruleset, how, only, args), how.fail_on)
    if args.fix or args.diff:
        fixing = partial(_checked, ruleset=ruleset, how=how, only=only, args=args)
        result = _mended(
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


def _kept(found: list[Found], args: argparse.Namespace) -> list[Found]:
    """Store the contents of streams, which can be read only once, if fixes need them."""
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
    # The progress bar starts a thread, so the processes are started first.
    with progress(files, quiet=args.quiet) as step:
        return check(gathered.found, ruleset, how, session, step, gathered.beside)


def _processors() -> int:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return available or 1


def _mended(
    gathered: Gathered,
    result: CheckResult,
    check_again: Callable[[Gathered], CheckResult],
    ruleset: Ruleset,
    how: Options,
    args: argparse.Namespace,
) -> CheckResult:
    """Write the fixes, or show them as a diff."""
    mended, after = fix_files(
        gathered.found,
        result,
        lambda found, seen: fixes_of(found, seen, ruleset, how, unsafe=args.unsafe_fixes),
        lambda found: check_again(replace(gathered, found=found)),
    )
    if args.diff:
        sys.stdout.write(diff_of(mended.files))
        for line in mended.left:
            print(line, file=sys.stderr)
        return replace(result, report=replace(result.report, unfixed=mended.left))
    for file in mended.files:
        write_fixed(file)
    return replace(after, report=replace(after.report, fixed=mended.changes, unfixed=mended.left))
