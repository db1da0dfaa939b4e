"""`gpugate simulate`: show what a candidate policy file would change, before it is in force."""

from __future__ import annotations

import datetime as dt
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import convert, structs

from gpugate import __version__
from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import CRON_JOB
from gpugate.webhook.admission.record_file import record_files
from gpugate.webhook.audit.cost.prices import Prices
from gpugate.webhook.audit.cost.summary import cost_of
from gpugate.webhook.audit.dump import DumpSource
from gpugate.webhook.audit.exemptions import Origin, entries, exemptions
from gpugate.webhook.audit.model import Action, Audited, AuditReport, Cluster, Finding, Summary
from gpugate.webhook.audit.scan import scan
from gpugate.webhook.audit.selection import Options
from gpugate.webhook.audit.source import NotReadError
from gpugate.webhook.audit.words import plural
from gpugate.webhook.cli import options
from gpugate.webhook.cli.identity import add_identity, cluster_of
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.cli.progress import listing
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.manifests.git import revision
from gpugate.webhook.manifests.policy_file import MAX_POLICY_FILE, generation
from gpugate.webhook.manifests.within import refuse_link
from gpugate.webhook.own_policies.catalog import OwnPaths
from gpugate.webhook.simulate.audit_log import read_audit_log, start_of
from gpugate.webhook.simulate.formats import FORMATS, render
from gpugate.webhook.simulate.futures import DAYS, MOST_DAYS, Futures
from gpugate.webhook.simulate.model import ProposedExemption, Simulation, worst_first
from gpugate.webhook.simulate.recorded import Current, RecordReplay
from gpugate.webhook.simulate.replay import Replay, Side, Workload
from gpugate.webhook.simulate.shadow import Shadow, ShadowError, read_document, read_servers
from gpugate.webhook.simulate.stored import Kept, finished_jobs, stored_changes
from gpugate.webhook.simulate.summary import summarized

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.platform import ClusterIdentity
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.admission.shadow_table import Shadowed
    from gpugate.webhook.audit.live import LiveSource
    from gpugate.webhook.audit.model import NotEvaluated
    from gpugate.webhook.audit.scan import Scan
    from gpugate.webhook.audit.source import Source
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.manifests.git import Revision
    from gpugate.webhook.simulate.model import Change

_SHIPPED: Final = "the shipped defaults"
_DENIED: Final = 1
_NOTHING: Final = 3
_UNREADABLE: Final = 4
# As `gpugate audit` has them by default.
_QPS: Final = 50.0
_BURST: Final = 100
_EPILOG: Final = """examples:
  gpugate simulate --candidate new.yaml --current old.yaml --from audit.log
  gpugate simulate --candidate new.yaml --from dump.json --from audit.log
  gpugate simulate --candidate new.yaml --from dump.json --max-new-denials 0
  gpugate simulate --candidate policy.yaml --base origin/main --from audit.log
  gpugate simulate --candidate new.yaml --from recorded/
  gpugate simulate --cluster --candidate new.yaml --current old.yaml
  gpugate simulate --cluster

PATH is an audit log of the API server (JSON lines, level Request or above, also
compressed), a directory of such logs, or a dump: output of `kubectl get KINDS -A
-o json`, a directory of such files, or a must-gather. Or it is a saved document
of /shadow, which servers with a shadow policy file have on their health port, or
the directory of `gpugate serve --record`. Without --current, the decisions that
the servers recorded are compared with those of the candidate.
--cluster reads the document of /shadow from the Pods of the webhook; with
--candidate it reads the objects of the cluster instead, which needs the rights of
`gpugate audit`.

Exit codes: 0 success; 1 more owners are newly denied than --max-new-denials;
2 wrong usage or configuration; 3 nothing to evaluate; 4 an input cannot be read."""


class _Sources(NamedTuple):
    """The files of `--from`, by what they are."""

    logs: tuple[Path, ...]
    dumps: tuple[str, ...]
    shadows: tuple[Shadowed, ...] = ()
    records: tuple[Path, ...] = ()


class _Stored(NamedTuple):
    """The stored objects of a source, evaluated by the current and the candidate policies."""

    source: Source
    current: Scan
    candidate: Scan
    of_cluster: bool


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    outputs = options.outputs(args.output or [FORMATS[0]], FORMATS)
    if args.write_exemptions and not args.exemption_owner.strip():
        raise UsageError("--write-exemptions needs --exemption-owner NAME")
    if not args.sources and not args.cluster:
        raise UsageError("--from PATH or --cluster is missing")
    now = dt.datetime.now(dt.UTC)
    try:
        sources = _sources(args.sources)
        simulation, policies = _shadowed(args, sources) or _replayed(args, sources) or _evaluated(args, sources, now)
    except OSError as error:
        print(f"error: {error.filename}: {(error.strerror or 'cannot be read').lower()}", file=sys.stderr)
        return _UNREADABLE
    except (CallError, ShadowError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _UNREADABLE
    if not simulation.coverage.requests and not simulation.coverage.stored:
        print(f"error: {_nothing(args, sources)}", file=sys.stderr)
        return _NOTHING
    simulation = _exempted(args, structs.replace(simulation, time=now), policies, now)
    simulation = summarized(simulation, has_live_data=bool(args.cluster or sources.shadows))
    for file, name in outputs.items():
        options.write(file, render(name, simulation, args.top))
    if args.write_exemptions:
        options.write(args.write_exemptions, _exemptions(args, simulation, policies, now))
    return _exit_code(simulation, args.max_new_denials)


def _nothing(args: argparse.Namespace, sources: _Sources) -> str:
    if args.cluster or sources.shadows:
        return "the servers have evaluated no request by the shadow policy file yet"
    return "--from contains no recorded requests and no stored objects"


def _evaluated(args: argparse.Namespace, sources: _Sources, now: dt.datetime) -> tuple[Simulation, Sequence[Policy]]:
    """Evaluate requests and stored objects; return the policies too."""
    if args.candidate is None:
        raise UsageError("--candidate FILE is missing")
    if args.cluster and sources.dumps:
        raise UsageError("--cluster and a dump are two states of a cluster: remove one of them")
    cluster = cluster_of(args)
    remarks: list[str] = []
    base = None if args.base is None else _base(args)
    own = _policies_of(base, remarks) if base else OwnPaths()
    current, of_current = _current(args, base, own, cluster)
    candidate = options.ruleset(args.candidate, own, cluster)
    with ExitStack() as stack:
        stored = None
        if sources.dumps:
            stored = _scan(DumpSource(sources.dumps, complete=args.complete_context), current, candidate, now)
        elif args.cluster:
            stored = _scan(Kept(_live(args, stack)), current, candidate, now, of_cluster=True)
        replay = _replay(sources.logs, stored, current, candidate, now)
        simulation = _simulation(args, of_current, replay, stored, candidate, now)
        simulation = structs.replace(simulation, remarks=(*simulation.remarks, *dict.fromkeys(remarks)))
        return simulation, [rule.policy for rule in candidate.rules]


def _base(args: argparse.Namespace) -> Revision:
    """Return the revision of `--base`.

    Raises:
        GitError: git does not know it.
        LinkError: the candidate is a link out of the repository.
        UsageError: there are two policy files in force, or the candidate is not in the repository.
    """
    if args.current is not None:
        raise UsageError("--base and --current contradict each other: remove one of them")
    # Whoever writes the change writes the candidate too.
    refuse_link(args.candidate, "--candidate")
    base = revision(args.base, ".")
    if not base.holds(str(args.candidate)):
        raise UsageError(
            f"--candidate {args.candidate}: is not in the repository of --base: name the file in force with --current"
        )
    return base


def _policies_of(base: Revision, remarks: list[str]) -> OwnPaths:
    """Return the policies outside the library as the base has them, because a change must not run code of its own.

    A remark is added when a policy file names any.
    """

    def read_from() -> Revision:
        remarks.append(f"policies outside the library are those of {base.name}, not of the change")
        return base

    return OwnPaths(base=read_from)


def _current(
    args: argparse.Namespace, base: Revision | None, own: OwnPaths, cluster: ClusterIdentity | None
) -> tuple[Ruleset, str]:
    """Return the policies in force, and where they are from."""
    if base is None:
        return options.ruleset(args.current, own, cluster), str(args.current or _SHIPPED)
    path = str(args.candidate)
    if base.file(path, MAX_POLICY_FILE) is None:
        return options.ruleset(None), f"{_SHIPPED} ({args.base} has no {path})"
    overrides = options.Overrides(cluster=cluster)
    return options.bound(args.candidate, own, base=base, overrides=overrides)[0], f"{path} of {args.base}"


def _shadowed(args: argparse.Namespace, sources: _Sources) -> tuple[Simulation, Sequence[Policy]] | None:
    """Return what servers have evaluated, and the policies; None if no source is of a server.

    Raises:
        CallError: the API server does not answer.
        ClusterError: the cluster is not configured.
        ShadowError: a server has no valid shadow policy file, or does not answer.
        UsageError: there are other sources or policy files too.
    """
    if not sources.shadows and (not args.cluster or args.candidate):
        return None
    if args.candidate or args.current or args.base or sources.logs or sources.dumps or sources.records:
        raise UsageError(
            "servers have compared their own policy files already: leave out --candidate, --current, logs and dumps"
        )
    documents = [*sources.shadows, *(_of_cluster(args) if args.cluster else ())]
    shadow = Shadow.of(documents)
    simulation = Simulation(
        gpugate=__version__,
        current=f"the policy file in force ({shadow.document.current})",
        candidate=f"the shadow policy file ({shadow.document.candidate})",
        sources=(*args.sources, *(["the servers of the cluster"] if args.cluster else ())),
        coverage=shadow.coverage(),
        changes=worst_first(shadow.changes()),
        remarks=tuple(shadow.remarks()),
    )
    return simulation, options.ruleset(None).catalog


def _replayed(args: argparse.Namespace, sources: _Sources) -> tuple[Simulation, Sequence[Policy]] | None:
    """Evaluate the reviews that servers recorded; return the policies too. None if no source is a record.

    Raises:
        GpugateError: a policy file is invalid.
        OSError: a file cannot be read.
        UsageError: there are other sources too, or there is no candidate.
    """
    if not sources.records:
        return None
    if sources.logs or sources.dumps or args.cluster:
        raise UsageError(
            "a record of reviews contains its own cluster data: simulate logs, dumps and clusters separately"
        )
    if args.candidate is None:
        raise UsageError("--candidate FILE is missing")
    if args.base is not None:
        raise UsageError("--base does not apply to a record of reviews: name the file in force with --current")
    cluster = cluster_of(args)
    candidate, current = options.ruleset(args.candidate, cluster=cluster), None
    if args.current is not None:
        ruleset = options.ruleset(args.current, cluster=cluster)
        current = Current(ruleset, generation(args.current.read_bytes()))
    replay = RecordReplay(sources.records, candidate, current)
    simulation = Simulation(
        gpugate=__version__,
        current=str(args.current or "the recorded decisions"),
        candidate=str(args.candidate),
        sources=tuple(args.sources),
        coverage=replay.coverage(),
        changes=worst_first(replay.changes()),
        remarks=tuple(replay.remarks()),
    )
    return simulation, [rule.policy for rule in candidate.rules]


def _of_cluster(args: argparse.Namespace) -> Sequence[Shadowed]:
    with ExitStack() as stack:
        connection, _ = _connected(args, stack)
        return tuple(read_servers(connection, args.namespace, args.service))


def _connected(args: argparse.Namespace, stack: ExitStack) -> tuple[Connection, str]:
    """Return the connection to the cluster, which the stack closes, and the name of the cluster."""
    from gpugate.webhook.cluster.connection import connect  # noqa: PLC0415 -- imports the Kubernetes client
    from gpugate.webhook.cluster.credentials import context_name  # noqa: PLC0415 -- as above
    from gpugate.webhook.cluster.options import choose_cluster  # noqa: PLC0415 -- as above

    chosen = choose_cluster(args.kubeconfig, args.context, os.environ)
    connection = connect(chosen)
    stack.callback(connection.close)
    return connection, context_name(chosen) or connection.host


def _live(args: argparse.Namespace, stack: ExitStack) -> LiveSource:
    from gpugate.webhook.audit.live import LiveSource, Throttle  # noqa: PLC0415 -- as above

    page_read = stack.enter_context(listing(quiet=False))
    return LiveSource(*_connected(args, stack), Throttle(_QPS, _BURST), page_read=page_read)


def _exit_code(simulation: Simulation, most: int | None) -> int:
    denied = simulation.denied_owners
    if most is None or denied <= most:
        return 0
    print(f"error: {plural(denied, 'owner')} newly denied (--max-new-denials {most})", file=sys.stderr)
    return _DENIED


def _sources(paths: Iterable[str]) -> _Sources:
    """Tell audit logs, in the order of their first requests, from dumps, documents of servers and records.

    Raises:
        OSError: a path cannot be read.
        ShadowError: a document of a server is damaged.
        UsageError: a path does not exist.
    """
    logs: list[tuple[dt.datetime, Path]] = []
    dumps: list[str] = []
    shadows: list[Shadowed] = []
    records: list[Path] = []
    for name in paths:
        path = Path(name)
        if not path.exists():
            raise UsageError(f"--from {name}: no such file or directory")
        if files_of_record := record_files(path):
            records += files_of_record
            continue
        if path.is_file() and (document := read_document(path)) is not None:
            shadows.append(document)
            continue
        files = sorted(entry for entry in path.iterdir() if entry.is_file()) if path.is_dir() else [path]
        started = [(start, file) for file in files if (start := start_of(file)) is not None]
        logs += started
        if not started:
            dumps.append(name)
    return _Sources(tuple(path for _, path in sorted(logs)), tuple(dumps), tuple(shadows), tuple(records))


def _scan(
    source: Source, current: Ruleset, candidate: Ruleset, now: dt.datetime, *, of_cluster: bool = False
) -> _Stored:
    chosen = Options(now, "")
    return _Stored(source, scan(source, current, chosen), scan(source, candidate, chosen), of_cluster)


def _replay(
    logs: Iterable[Path], stored: _Stored | None, current: Ruleset, candidate: Ruleset, now: dt.datetime
) -> Replay:
    before = Side(current, stored.current.facts if stored else NoFacts())
    after = Side(candidate, stored.candidate.facts if stored else NoFacts())
    replay = Replay(before, after, now.date())
    for log in logs:
        for item in read_audit_log(log):
            replay.add(item)
    return replay


def _simulation(
    args: argparse.Namespace,
    of_current: str,
    replay: Replay,
    stored: _Stored | None,
    candidate: Ruleset,
    now: dt.datetime,
) -> Simulation:
    prices = Prices(load_instance_types())
    if stored:
        prices = prices.extended(stored.candidate.inventory.types)
    changes = worst_first([*replay.changes(), *(_changes_of(stored, candidate, prices) if stored else ())])
    counts = stored.candidate.report.counts if stored else {}
    coverage = replay.coverage(sum(counts.values()), _workloads(stored))
    simulation = Simulation(
        gpugate=__version__,
        current=of_current,
        candidate=str(args.candidate),
        sources=(
            *args.sources,
            *([f"the cluster {stored.source.cluster.name}"] if stored and stored.of_cluster else []),
        ),
        coverage=coverage,
        changes=changes,
        days=args.days,
        gaps=tuple(_gaps(stored)) if stored else (),
    )
    if stored is None:
        return simulation
    policies = [rule.policy for rule in candidate.rules]
    futures = Futures(changes, policies, stored.source, stored.candidate.inventory, prices, now, args.days)
    nodes = futures.nodes()
    return structs.replace(
        simulation, nodes=nodes, pools=futures.pools(nodes), runs=futures.runs(), scale_ups=futures.scale_ups()
    )


def _changes_of(stored: _Stored, candidate: Ruleset, prices: Prices) -> Iterator[Change]:
    inventory, report = stored.candidate.inventory, stored.candidate.report
    config = candidate.config
    money = cost_of(inventory, report.audited, prices, config.platform, config.target)
    allocated = money.allocated if money else {}
    yield from stored_changes(stored.current.report, report, allocated, finished_jobs(stored.source))


def _gaps(stored: _Stored) -> Iterator[NotEvaluated]:
    """Yield what could not be read, without the kinds of which the source has no objects."""
    yield from (gap for gap in stored.candidate.report.not_evaluated if gap.reason != stored.source.absence)


def _workloads(stored: _Stored | None) -> Collection[Workload]:
    """Return the stored workloads that create Pods, without suspended CronJobs."""
    if stored is None:
        return ()
    names = (owner.object for owner in stored.candidate.report.audited)
    workloads = {Workload(name.kind, name.namespace, name.name) for name in names}
    try:
        for cron_job in stored.source.read(CRON_JOB):
            obj = Field(cron_job.object)
            if obj["spec", "suspend"].value is True:
                metadata = obj["metadata"]
                workloads.discard(Workload("CronJob", metadata["namespace"].text, metadata["name"].text))
    except NotReadError:
        pass
    return workloads


def _denied(simulation: Simulation, now: dt.datetime) -> tuple[AuditReport, Origin]:
    """Return the newly denied owners as an audit, for exemptions, and where they come from."""
    audited = tuple(
        Audited.of(
            change.object,
            tuple(
                Finding(policy.policy, "", policy.message, "enforce", Action.DENY)
                for policy in change.policies
                if policy.newly_denied
            ),
        )
        for change in simulation.newly_denied
    )
    report = AuditReport(
        gpugate=__version__,
        cluster=Cluster(", ".join(simulation.sources)),
        time=now,
        generation="",
        target="",
        coverage=1.0,
        summary=Summary.of(audited),
        counts={},
        audited=audited,
    )
    origin = Origin(f"gpugate simulate of {report.cluster.name}", f"that {simulation.candidate} would newly deny")
    return report, origin


def _exempted(
    args: argparse.Namespace, simulation: Simulation, policies: Sequence[Policy], now: dt.datetime
) -> Simulation:
    """Return the simulation with exemptions that it proposes."""
    report, origin = _denied(simulation, now)
    proposed, _ = entries(report, {}, policies, args.exemption_days, args.exemption_owner, origin)
    return structs.replace(simulation, exemptions=convert(proposed, tuple[ProposedExemption, ...]))


def _exemptions(args: argparse.Namespace, simulation: Simulation, policies: Sequence[Policy], now: dt.datetime) -> str:
    """Return exemptions for the newly denied owners, in the format of the audit's."""
    report, origin = _denied(simulation, now)
    return exemptions(report, {}, policies, args.exemption_days, args.exemption_owner, origin)


def parser(environ: Mapping[str, str] = os.environ) -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate simulate",
        description="Show what a candidate policy file would change: which recorded requests and stored objects it decides "
        "differently than the current one, their owners, and their GPUs. Changes nothing.",
        epilog=_EPILOG,
    )
    add = command.add_argument
    add("--candidate", type=Path, metavar="FILE", help="policy file to evaluate")
    add("--current", type=Path, metavar="FILE", help=f"policy file in force (default: {_SHIPPED})")
    add(
        "--base",
        metavar="REV",
        help="the policy file in force is the candidate's file in this revision of git; policies outside the library are "
        "read from it too",
    )
    add_identity(command)
    add(
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="PATH",
        help="audit log of the API server, dump of a cluster, saved document of /shadow, or record of reviews; repeatable",
    )
    add(
        "--cluster",
        action="store_true",
        help="with --candidate, read the objects of a cluster; without it, what the servers of an installation have evaluated "
        "by their shadow policy file",
    )
    add(
        "--complete-context",
        action="store_true",
        help="treat the dump as the complete cluster state",
    )
    add(
        "--max-new-denials",
        type=options.natural,
        metavar="N",
        help="exit with code 1 if more owners than this are newly denied",
    )
    add(
        "--days",
        type=options.days(MOST_DAYS),
        default=DAYS,
        metavar="N",
        help=f"compute scheduled runs and disruption windows for this many days, 1 to {MOST_DAYS} (default: {DAYS})",
    )
    add("--top", type=options.natural, default=20, metavar="N", help="list the first N owners, 0 for all (default: 20)")
    add(
        "-o",
        "--output",
        action="append",
        metavar="FORMAT[=FILE]",
        help=f"{options.listed(FORMATS)}; repeatable (default: text)",
    )
    add("--write-exemptions", metavar="FILE", help="write a policy file with exemptions for all newly denied owners")
    add("--exemption-owner", default="", metavar="NAME", help="owner of the exemptions")
    add(
        "--exemption-days",
        type=options.natural,
        default=30,
        metavar="DAYS",
        help="days until the exemptions expire (default: %(default)d)",
    )
    cluster = command.add_argument_group("cluster (with --cluster)")
    options.add_cluster(cluster, environ)
    for flag, text in (("--namespace", "namespace of the webhook"), ("--service", "Service of the webhook")):
        cluster.add_argument(flag, metavar="NAME", default="gpugate", help=f"{text} (default: gpugate)")
    return command
