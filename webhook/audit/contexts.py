"""Audit the clusters of many contexts of a kubeconfig: a process for each, some at a time, and each within a time limit.

A cluster that hangs, refuses or is unreachable costs its own result only. A process also bounds what a cluster can do to the
others: its memory, its credential plugin, and its policies.
"""

from __future__ import annotations

import argparse
import datetime as dt
import io
import os
import re
import signal
import sys
import time
from collections import deque
from contextlib import redirect_stderr, suppress
from multiprocessing import connection, get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.platform import ClusterIdentity
from gpugate.webhook.audit.formats.json import AuditDocumentError, read
from gpugate.webhook.audit.merged import ClusterAudit, merge, write_json, write_text
from gpugate.webhook.audit.model import Action
from gpugate.webhook.cli import options
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cluster.credentials import context_names
from gpugate.webhook.cluster.options import ClusterOptions
from gpugate.webhook.report import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from multiprocessing.context import SpawnProcess

    from gpugate.webhook.audit.merged import ClustersReport
    from gpugate.webhook.audit.model import NotEvaluated

NAME: Final = "{cluster}"
"""What stands for the name of the cluster in the files of one cluster."""
_MERGED: Final = ("text", "json")
# Formats whose target is for many clusters.
_TABLES: Final = ("ndjson", "parquet")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_FOUND: Final = 1
_USAGE: Final = 2
_NOTHING: Final = 3
_INCOMPLETE: Final = 4
_ORDER: Final = list(Action)
# A process ends itself this long after its limit, if the command that started it was killed.
_ORPHAN_SECONDS: Final = 5.0
_MOST_NAMED: Final = 20


def audit_contexts(args: argparse.Namespace, run: Callable[[argparse.Namespace], int]) -> int:
    """Audit each cluster with `run`, write the merged report, and return the exit code.

    Raises:
        GpugateError: flags contradict each other, no context matches, the flags are invalid in every cluster, or a file
            cannot be written.
    """
    _refuse(args)
    names = tuple(_matching(args))
    merged, own = _outputs(args.output or [_MERGED[0]])
    files = _names(names)
    started = dt.datetime.now(dt.UTC)
    with TemporaryDirectory(prefix="gpugate-audit-", ignore_cleanup_errors=True) as folder:
        jobs = [
            Job(
                name, _of_cluster(args, name, files[name], own, Path(folder, f"{index}.json")), Path(folder, str(index))
            )
            for index, name in enumerate(names)
        ]
        ended = run_all(jobs, run, args.parallel, args.cluster_timeout)
        audits = [_audit(job, ended.get(job.context), args.cluster_timeout) for job in jobs]
    _refuse_everywhere(ended.values(), len(jobs))
    report = merge(audits, args.contexts, started)
    for file, name in merged.items():
        paint = plain.Paint(
            plain.wanted(args.color, is_terminal=not file and sys.stdout.isatty(), environment=os.environ)
        )
        options.write(file, write_json(report) if name == "json" else write_text(report, paint, args.top))
    for cluster in report.clusters:
        if cluster.result in {"failed", "timeout"}:
            sys.stderr.write(plain.plain(f"error: {cluster.context}: {cluster.reason}") + "\n")
    return _exit_code(report, args)


def _refuse(args: argparse.Namespace) -> None:
    reasons = {
        "--contexts selects clusters: remove --from": args.dump,
        "--contexts and --context contradict each other: remove one of them": args.context,
        "--cluster-name names one cluster: with --contexts, the policy file or the context names each": args.cluster_name,
        "--compare with a file compares one cluster: with --contexts, use --history DIR": (
            any(not path.is_dir() for path in args.compare)
        ),
        f"--write-exemptions writes a file for each cluster: write {NAME} in its name": (
            args.write_exemptions and NAME not in args.write_exemptions
        ),
    }
    for reason, applies in reasons.items():
        if applies:
            raise UsageError(reason)


def _matching(args: argparse.Namespace) -> Iterator[str]:
    known = context_names(ClusterOptions(args.kubeconfig))
    for pattern in args.contexts:
        if not any(formats.matches(pattern, name) for name in known):
            some = ", ".join(known[:_MOST_NAMED]) + (", ..." if len(known) > _MOST_NAMED else "")
            raise UsageError(f"--contexts {pattern}: no context of the kubeconfig matches; it has {some or 'none'}")
    yield from (name for name in known if any(formats.matches(pattern, name) for pattern in args.contexts))


def _outputs(values: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the outputs of the merged report as file -> format, and the values of `-o` for each cluster."""
    own = [value for value in values if NAME in value or value.partition("=")[0] in _TABLES]
    merged = [value for value in values if value not in own]
    for value in merged:
        name, _, file = value.partition("=")
        if name not in _MERGED:
            raise UsageError(
                f"-o {value}: the report of many clusters is {options.listed(_MERGED)}; for a report of each cluster, "
                f"write {NAME} in the file name, such as -o {name}={NAME}-{Path(file).name or f'audit.{name}'}"
            )
    return options.outputs(merged, _MERGED), own


def _names(contexts: Sequence[str]) -> dict[str, str]:
    """Return context -> its name in file names.

    Raises:
        UsageError: two contexts have the same name.
    """
    by_name: dict[str, str] = {}
    for context in contexts:
        name = _UNSAFE.sub("_", context).strip("._") or "_"
        if other := by_name.get(name):
            raise UsageError(f"--contexts: {other} and {context} have the same file name {name}: rename one of them")
        by_name[name] = context
    return {context: name for name, context in by_name.items()}


def _of_cluster(
    args: argparse.Namespace, context: str, name: str, outputs: Sequence[str], document: Path
) -> argparse.Namespace:
    """Return the arguments of the audit of one cluster."""

    def named(text: str | None) -> str | None:
        return text and text.replace(NAME, name)

    values: dict[str, Any] = {  # Any: as argparse has them
        **vars(args),
        "contexts": [],
        "context": context,
        "output": [*(named(output) for output in outputs), f"json={document}"],
        "write_exemptions": named(args.write_exemptions),
        "prometheus": named(args.prometheus),
        "prometheus_matcher": [named(matcher) for matcher in args.prometheus_matcher],
        "cluster_name": _identity(context) if args.policy_file else None,
        "fail_on": "never",
        "require_coverage": None,
        "quiet": True,
    }
    return argparse.Namespace(**values)


def _identity(context: str) -> str | None:
    """Return the name of a cluster for selectors of a policy file: its context, if it is a valid name."""
    try:
        return msgspec.convert({"name": context}, ClusterIdentity).name
    except msgspec.ValidationError:
        return None


class Job(NamedTuple):
    """The audit of a cluster: its context, its arguments, and where its process writes how it ended."""

    context: str
    args: argparse.Namespace
    ending: Path


class Ending(msgspec.Struct, frozen=True):
    """How the process of a cluster ended: its exit code, and what it wrote to standard error."""

    code: int
    log: str


def _work(run: Callable[[argparse.Namespace], int], job: Job, seconds: float) -> None:
    """Audit one cluster in this process."""
    if sys.platform != "win32":
        with suppress(OSError):
            os.setsid()  # so that a credential plugin ends with this process
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds + _ORPHAN_SECONDS)
    log = io.StringIO()
    with redirect_stderr(log):
        try:
            code = run(job.args)
        except GpugateError as error:
            code = _USAGE
            log.write(f"error: {error}\n")
    draft = job.ending.with_suffix(".draft")
    draft.write_bytes(msgspec.json.encode(Ending(code, log.getvalue())))
    draft.replace(job.ending)


def run_all(
    jobs: Sequence[Job],
    run: Callable[[argparse.Namespace], int],
    parallel: int,
    seconds: float,
    now: Callable[[], float] = time.monotonic,
) -> dict[str, Ending]:
    """Run each job in a process of its own.

    Args:
        jobs: the audits.
        run: audits one cluster; a function of a module, which the processes import.
        parallel: how many processes run at a time.
        seconds: the time limit of a process.
        now: a monotonic clock, in seconds.

    Returns:
        Context -> how its process ended; without those that were stopped, because they did not end in time.
    """
    # Not forked, because the client's libraries have threads and locks.
    processes = get_context("spawn")
    pending = deque(jobs)
    running: dict[SpawnProcess, tuple[Job, float]] = {}
    ended: dict[str, Ending] = {}
    try:
        while pending or running:
            while pending and len(running) < parallel:
                job = pending.popleft()
                process = processes.Process(target=_work, args=(run, job, seconds), daemon=True)
                process.start()
                running[process] = (job, now() + seconds)
            nearest = min(deadline for _, deadline in running.values())
            connection.wait([process.sentinel for process in running], max(0.0, nearest - now()))
            for process, (job, deadline) in list(running.items()):
                if process.is_alive() and now() < deadline:
                    continue
                is_late = process.is_alive()
                if is_late:
                    _kill(process)
                process.join()
                del running[process]
                # A process that has written how it ended may still need a moment to exit.
                if job.ending.exists():
                    ended[job.context] = msgspec.json.decode(job.ending.read_bytes(), type=Ending)
                elif not is_late:
                    ended[job.context] = Ending(-1, f"the audit ended unexpectedly (exit code {process.exitcode})")
    finally:
        for process in running:
            _kill(process)
            process.join()
    return ended


def _kill(process: SpawnProcess) -> None:
    if process.pid is not None and sys.platform != "win32":
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _audit(job: Job, ending: Ending | None, seconds: float) -> ClusterAudit:
    if ending is None:
        return ClusterAudit(job.context, "timeout", f"not finished after {seconds:g} s (--cluster-timeout)")
    sys.stderr.write("".join(f"{line}\n" for line in ending.log.splitlines() if line.startswith("{")))
    document = Path(job.args.output[-1].removeprefix("json="))
    if not document.exists():
        return ClusterAudit(job.context, "failed", _error(ending))
    try:
        report = read(document.read_bytes())
    except AuditDocumentError as error:
        return ClusterAudit(job.context, "failed", str(error))
    if ending.code not in {0, _NOTHING}:
        return ClusterAudit(job.context, "partial", _error(ending), report)
    if report.not_evaluated or report.coverage < 1:
        return ClusterAudit(job.context, "partial", _gap(report.not_evaluated), report)
    return ClusterAudit(job.context, "complete", report=report)


def _gap(missing: Sequence[NotEvaluated]) -> str:
    """Return what was not evaluated first, and why."""
    others = f", and {len(missing) - 1:,} more" if len(missing) > 1 else ""
    return f"{missing[0].what}: {missing[0].reason}{others}" if missing else "some policies had no data"


def _error(ending: Ending) -> str:
    """Return the last error of a process, without its prefix."""
    lines = [line for line in ending.log.splitlines() if line and not line.startswith("{")]
    return lines[-1].removeprefix("error: ") if lines else "the audit failed without a message"


def _refuse_everywhere(endings: Collection[Ending], count: int) -> None:
    """Raise UsageError if each process refused its arguments with the same message."""
    refused = {_error(ending) for ending in endings if ending.code == _USAGE}
    if len(refused) == 1 and sum(ending.code == _USAGE for ending in endings) == count:
        raise UsageError(refused.pop())


def _exit_code(report: ClustersReport, args: argparse.Namespace) -> int:
    reports = [cluster.report for cluster in report.clusters if cluster.report is not None]
    worst = min((_ORDER.index(audited.action) for r in reports for audited in r.audited), default=len(_ORDER))
    if args.fail_on != "never" and worst <= _ORDER.index(Action(args.fail_on)):
        return _FOUND
    short = [r for r in reports if args.require_coverage is not None and r.coverage * 100 < args.require_coverage]
    for r in short:
        text = f"error: {r.cluster.name}: the coverage is {r.coverage:.1%}, below the {args.require_coverage:g}% of"
        sys.stderr.write(f"{plain.plain(text)} --require-coverage\n")
    if short or any(cluster.result in {"failed", "timeout"} for cluster in report.clusters):
        return _INCOMPLETE
    return 0 if any(sum(r.counts.values()) for r in reports) else _NOTHING
