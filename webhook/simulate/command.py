"""`gpugate simulate`: show what a candidate policy file would change, before it is in force."""

from __future__ import annotations

import datetime as dt
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate import __version__
from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.audit.cost.prices import Prices
from gpugate.webhook.audit.cost.summary import cost_of
from gpugate.webhook.audit.dump import DumpSource
from gpugate.webhook.audit.exemptions import Origin, exemptions
from gpugate.webhook.audit.model import Action, Audited, AuditReport, Cluster, Finding, Summary
from gpugate.webhook.audit.scan import scan
from gpugate.webhook.audit.selection import Options
from gpugate.webhook.audit.words import plural
from gpugate.webhook.cli import options
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.simulate.audit_log import read_audit_log, start_of
from gpugate.webhook.simulate.formats import FORMATS, render
from gpugate.webhook.simulate.model import Coverage, Simulation, worst_first
from gpugate.webhook.simulate.replay import Replay, Side
from gpugate.webhook.simulate.shadow import Shadow, ShadowError, read_document, read_servers
from gpugate.webhook.simulate.stored import nodes_at_risk, stored_changes

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.admission.shadow_table import Shadowed
    from gpugate.webhook.audit.scan import Scan
    from gpugate.webhook.simulate.model import Change

_SHIPPED: Final = "the shipped defaults"
_DENIED: Final = 1
_NOTHING: Final = 3
_UNREADABLE: Final = 4
_EPILOG: Final = """examples:
  gpugate simulate --candidate new.yaml --current old.yaml --from audit.log
  gpugate simulate --candidate new.yaml --from dump.json --from audit.log
  gpugate simulate --candidate new.yaml --from dump.json --max-new-denials 0
  gpugate simulate --cluster

PATH is an audit log of the API server (JSON lines, level Request or above, also
compressed), a directory of such logs, or a dump: output of `kubectl get KINDS -A
-o json`, a directory of such files, or a must-gather. Or it is a saved document
of /shadow, which servers with a shadow policy file have on their health port.
--cluster reads this document from the Pods of the webhook.

Exit codes: 0 success; 1 more owners are newly denied than --max-new-denials;
2 wrong usage or configuration; 3 nothing to evaluate; 4 an input cannot be read."""


class _Sources(NamedTuple):
    """The files of `--from`, by what they are."""

    logs: tuple[Path, ...]
    dumps: tuple[str, ...]
    shadows: tuple[Shadowed, ...] = ()


class _Stored(NamedTuple):
    """The stored objects, evaluated by the current and the candidate policies."""

    current: Scan
    candidate: Scan


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
        simulation, policies = _shadowed(args, sources) or _evaluated(args, sources, now)
    except OSError as error:
        print(f"error: {error.filename}: {(error.strerror or 'cannot be read').lower()}", file=sys.stderr)
        return _UNREADABLE
    except (CallError, ShadowError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _UNREADABLE
    if not simulation.coverage.requests and not simulation.coverage.stored:
        print(f"error: {_nothing(args, sources)}", file=sys.stderr)
        return _NOTHING
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
    current, candidate = options.ruleset(args.current), options.ruleset(args.candidate)
    stored = _scan(sources.dumps, args, current, candidate, now) if sources.dumps else None
    replay = _replay(sources.logs, stored, current, candidate, now)
    return _simulation(args, replay, stored, candidate), [rule.policy for rule in candidate.rules]


def _shadowed(args: argparse.Namespace, sources: _Sources) -> tuple[Simulation, Sequence[Policy]] | None:
    """Return what servers have evaluated, and the policies; None if no source is of a server.

    Raises:
        CallError: the API server does not answer.
        ClusterError: the cluster is not configured.
        ShadowError: a server has no valid shadow policy file, or does not answer.
        UsageError: there are other sources or policy files too.
    """
    if not args.cluster and not sources.shadows:
        return None
    if args.candidate or args.current or sources.logs or sources.dumps:
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


def _of_cluster(args: argparse.Namespace) -> Sequence[Shadowed]:
    from gpugate.webhook.cluster.connection import connect  # noqa: PLC0415 -- imports the Kubernetes client
    from gpugate.webhook.cluster.options import choose_cluster  # noqa: PLC0415 -- as above

    connection = connect(choose_cluster(args.kubeconfig, args.context, os.environ))
    try:
        return tuple(read_servers(connection, args.namespace, args.service))
    finally:
        connection.close()


def _exit_code(simulation: Simulation, most: int | None) -> int:
    denied = simulation.denied_owners
    if most is None or denied <= most:
        return 0
    print(f"error: {plural(denied, 'owner')} newly denied (--max-new-denials {most})", file=sys.stderr)
    return _DENIED


def _sources(paths: Iterable[str]) -> _Sources:
    """Tell audit logs, in the order of their first requests, from dumps and documents of servers.

    Raises:
        OSError: a path cannot be read.
        ShadowError: a document of a server is damaged.
        UsageError: a path does not exist.
    """
    logs: list[tuple[dt.datetime, Path]] = []
    dumps: list[str] = []
    shadows: list[Shadowed] = []
    for name in paths:
        path = Path(name)
        if not path.exists():
            raise UsageError(f"--from {name}: no such file or directory")
        if path.is_file() and (document := read_document(path)) is not None:
            shadows.append(document)
            continue
        files = sorted(entry for entry in path.iterdir() if entry.is_file()) if path.is_dir() else [path]
        started = [(start, file) for file in files if (start := start_of(file)) is not None]
        logs += started
        if not started:
            dumps.append(name)
    return _Sources(tuple(path for _, path in sorted(logs)), tuple(dumps), tuple(shadows))


def _scan(
    dumps: Sequence[str], args: argparse.Namespace, current: Ruleset, candidate: Ruleset, now: dt.datetime
) -> _Stored:
    source = DumpSource(dumps, complete=args.complete_context)
    return _Stored(*(scan(source, ruleset, Options(now, "")) for ruleset in (current, candidate)))


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


def _simulation(args: argparse.Namespace, replay: Replay, stored: _Stored | None, candidate: Ruleset) -> Simulation:
    changes = [*replay.changes(), *(_changes_of(stored, candidate) if stored else ())]
    counts = stored.candidate.report.counts if stored else {}
    coverage = replay.coverage(sum(counts.values()), _cron_jobs(stored))
    return Simulation(
        gpugate=__version__,
        current=str(args.current or _SHIPPED),
        candidate=str(args.candidate),
        sources=tuple(args.sources),
        coverage=coverage,
        changes=worst_first(changes),
        nodes=nodes_at_risk(changes, stored.candidate.inventory) if stored else (),
        remarks=tuple(_remarks(coverage, stored)),
    )


def _changes_of(stored: _Stored, candidate: Ruleset) -> Iterator[Change]:
    inventory, report = stored.candidate.inventory, stored.candidate.report
    config = candidate.config
    money = cost_of(inventory, report.audited, Prices(load_instance_types()), config.platform, config.target)
    yield from stored_changes(stored.current.report, report, money.allocated if money else {})


def _cron_jobs(stored: _Stored | None) -> frozenset[tuple[str, str]]:
    audited = stored.candidate.report.audited if stored else ()
    return frozenset((owner.object.namespace, owner.object.name) for owner in audited if owner.object.kind == "CronJob")


def _remarks(coverage: Coverage, stored: _Stored | None) -> Iterator[str]:
    if coverage.requests and stored is None:
        yield "policies that need cluster data were not evaluated: add a dump with --from"
    if coverage.requests and 0 < coverage.days < 1:
        yield f"the log covers {coverage.days * 24:.1f} hours: workloads that run less often are missing"
    if stored is not None:
        gaps = [gap.what for gap in stored.candidate.report.not_evaluated if ", " not in gap.what]
        if gaps:
            yield f"not in the dumps, so policies that need them were not evaluated: {', '.join(gaps)}"


def _exemptions(args: argparse.Namespace, simulation: Simulation, policies: Sequence[Policy], now: dt.datetime) -> str:
    """Return exemptions for the newly denied owners, in the format of the audit's."""
    audited = tuple(
        Audited.of(
            change.object,
            tuple(
                Finding(policy.policy, "", policy.message, "enforce", Action.DENY)
                for policy in change.policies
                if policy.candidate is Action.DENY and policy.current is not Action.DENY
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
    return exemptions(report, {}, policies, args.exemption_days, args.exemption_owner, origin)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


_count.__name__ = "number"  # argparse names it in its message


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
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="PATH",
        help="audit log of the API server, dump of a cluster, or saved document of /shadow; repeatable",
    )
    add(
        "--cluster",
        action="store_true",
        help="read what the servers of an installation have evaluated by their shadow policy file",
    )
    add(
        "--complete-context",
        action="store_true",
        help="treat the dump as the complete cluster state",
    )
    add(
        "--max-new-denials",
        type=_count,
        metavar="N",
        help="exit with code 1 if more owners than this are newly denied",
    )
    add("--top", type=_count, default=20, metavar="N", help="list the first N owners, 0 for all (default: 20)")
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
        type=_count,
        default=30,
        metavar="DAYS",
        help="days until the exemptions expire (default: %(default)d)",
    )
    cluster = command.add_argument_group("cluster (with --cluster)")
    options.add_cluster(cluster, environ)
    for flag, text in (("--namespace", "namespace of the webhook"), ("--service", "Service of the webhook")):
        cluster.add_argument(flag, metavar="NAME", default="gpugate", help=f"{text} (default: gpugate)")
    return command
