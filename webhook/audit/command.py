"""`gpugate audit`: report what the webhook would do with the objects of a cluster, and the cost of their GPUs."""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from gpugate.policies.catalog import CATALOG
from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.engine.config import PolicyConfig, near_misses
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.audit.anonymize import anonymize, anonymize_comparison, pseudonyms
from gpugate.webhook.audit.compare import compare
from gpugate.webhook.audit.contexts import audit_contexts
from gpugate.webhook.audit.cost.gpu_metrics import Window
from gpugate.webhook.audit.cost.prices import Prices, read_price_table
from gpugate.webhook.audit.cost.summary import cost_of
from gpugate.webhook.audit.cost.working_hours import check_zones
from gpugate.webhook.audit.dump import DumpSource
from gpugate.webhook.audit.earlier import earlier_audits, recorded_name, selection_flags
from gpugate.webhook.audit.exemptions import exemptions
from gpugate.webhook.audit.flags import parser
from gpugate.webhook.audit.formats import names as audit_formats
from gpugate.webhook.audit.formats.names import FORMATS
from gpugate.webhook.audit.formats.presentation import Presentation
from gpugate.webhook.audit.gpu_usage import measure, with_usage
from gpugate.webhook.audit.history import Run, append
from gpugate.webhook.audit.identity import identified, new_run_id
from gpugate.webhook.audit.idle_findings import with_idle_findings
from gpugate.webhook.audit.installed_policy_file import installed_policy_file
from gpugate.webhook.audit.live import LiveSource, Throttle
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.prometheus import Login
from gpugate.webhook.audit.prometheus import connect as prometheus
from gpugate.webhook.audit.report_writer import write_reports
from gpugate.webhook.audit.rows import RunSettings, rows_of
from gpugate.webhook.audit.scan import scan, worst_first
from gpugate.webhook.audit.selection import Options, Selection, parse_selector
from gpugate.webhook.audit.summary_log import summary_line
from gpugate.webhook.audit.table_files import TablesError, check_output, write_tables
from gpugate.webhook.audit.tables import TABLE_FORMATS
from gpugate.webhook.audit.trend import trend
from gpugate.webhook.audit.words import Amounts
from gpugate.webhook.cli import options
from gpugate.webhook.cli.identity import cluster_of, identity
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cli.progress import listing
from gpugate.webhook.cli.selection import selected
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.credentials import context_name
from gpugate.webhook.cluster.discovery import resource_name
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.cluster.options import choose_cluster
from gpugate.webhook.manifests.catalogue_file import read_catalogue, with_catalogue
from gpugate.webhook.manifests.policy_file import (
    SHIPPED,
    generation,
    load_policy_file,
    parse_policy_file,
    read_policy_file,
)
from gpugate.webhook.own_policies.catalog import OwnPaths, library_families
from gpugate.webhook.registration.rbac import audit_rbac, audited_resources
from gpugate.webhook.report import plain, yaml_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.catalogue import CatalogueFile
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.platform import ClusterIdentity
    from gpugate.webhook.audit.cost.gpu_use import PodUse
    from gpugate.webhook.audit.model import AuditReport
    from gpugate.webhook.audit.prometheus import Prometheus
    from gpugate.webhook.audit.records import Covered
    from gpugate.webhook.audit.scan import Scan
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.report.located import ObjectName


def selection(args: argparse.Namespace) -> Selection:
    """Return the selection from the flags.

    Raises:
        GpugateError: two flags contradict each other, a kind is misspelt, or the label selector is invalid.
    """
    if args.all_namespaces and args.namespace:
        raise UsageError("-A and -n contradict each other: remove one of them")
    known = dict(_spellings())
    return Selection(
        namespaces=frozenset(args.namespace),
        excluded=frozenset(args.exclude_namespace),
        kinds=frozenset(_kinds("--include", args.include, known)),
        without=frozenset(_kinds("--exclude", args.exclude, known)),
        labels=parse_selector(args.selector) if args.selector else None,
    )


def _spellings() -> Iterator[tuple[str, str]]:
    """Yield each spelling of a kind in lower case, with the kind."""
    for resource in audited_resources(bind(CATALOG, PolicyConfig())):
        kind = resource.kind
        for spelling in (kind.name, kind.plural, resource_name(kind)):
            yield spelling.lower(), kind.name


def _kinds(flag: str, values: Iterable[str], known: Mapping[str, str]) -> Iterator[str]:
    """Yield kinds. Unknown kinds are accepted, because they may own Pods."""
    for name in (part.strip() for value in values for part in value.split(",")):
        near = () if name.lower() in known else near_misses(name.lower(), list(known))
        if near:
            raise UsageError(f"{flag} {name}: unknown kind; did you mean {known[near[0]]}?")
        yield known.get(name.lower(), name)


def connected(args: argparse.Namespace) -> tuple[Connection, str] | None:
    """Return the connection to the cluster and its name; None for a dump.

    Raises:
        GpugateError: the kubeconfig cannot be used, or flags contradict each other.
    """
    if args.dump:
        if args.kubeconfig or args.context:
            raise UsageError("--from selects a dump, --kubeconfig and --context a cluster: remove one of them")
        return None
    options = choose_cluster(args.kubeconfig, args.context, os.environ, "audit a dump with --from DUMP")
    connection = connect(options)
    return connection, context_name(options) or connection.host


def live(
    connection: Connection,
    name: str,
    args: argparse.Namespace,
    throttle: Throttle,
    page_read: Callable[[Kind, int, int | None], None],
) -> LiveSource:
    """Return the cluster as a source.

    Raises:
        CallError: it cannot be reached.
    """
    return LiveSource(
        connection, name, throttle, limit=args.chunk_size, namespaces=tuple(args.namespace), page_read=page_read
    )


def dump(args: argparse.Namespace) -> DumpSource:
    """Return a dump as a source.

    Raises:
        UsageError: a path does not exist.
    """
    for path in args.dump:
        if path != "-" and not Path(path).exists():
            raise UsageError(f"--from {path}: no such file or directory")
    return DumpSource(args.dump, complete=args.complete_context)


@dataclass(frozen=True, slots=True)
class Plan:
    """The content of the files that flags name.

    Attributes:
        prices: the prices of instance types; None with `--no-cost`.
        earlier: the newest JSON document of an earlier audit, for `--compare`.
        runs: the figures of earlier audits, from `--compare` and `--history`.
        remarks: notes on these files for the user.
        server: the Prometheus of `--prometheus`, which is not queried yet.
    """

    prices: Prices | None
    earlier: bytes | None
    runs: tuple[Run, ...] = ()
    remarks: tuple[str, ...] = ()
    server: Prometheus | None = None


def plan(args: argparse.Namespace) -> Plan:
    """Check the flags, and read the files that they name.

    Raises:
        GpugateError: flags contradict each other, or a file is unreadable or invalid.
    """
    _refuse(args)
    earlier, runs, remarks = earlier_audits(args, dt.datetime.now(dt.UTC))
    if args.no_cost:
        return Plan(None, earlier, runs, remarks)
    catalogue = load_instance_types()
    server, discounts = _server(args), dict(args.discount)
    if args.price_table is None:
        return Plan(Prices(catalogue, discounts=discounts), earlier, runs, remarks, server)
    table = read_price_table(args.price_table, catalogue.positions)
    prices = Prices(catalogue, table.prices, table.source, table.by_capacity, discounts)
    return Plan(prices, earlier, runs, (*remarks, *table.remarks), server)


def _server(args: argparse.Namespace) -> Prometheus | None:
    if args.prometheus is None:
        return None
    login = Login(
        args.prometheus_token_file,
        args.prometheus_user,
        args.prometheus_password_file,
        args.prometheus_ca,
        args.prometheus_tenant,
    )
    return prometheus(args.prometheus, login, args.prometheus_timeout)


def _refuse(args: argparse.Namespace) -> None:
    reasons = {
        "--write-reports writes into a cluster: remove --from": args.write_reports and args.dump,
        "--write-reports writes the findings of all policies: remove --select and --ignore": (
            args.write_reports and (args.select or args.ignore)
        ),
        "--complete-context needs a dump: add --from": args.complete_context and not args.dump,
        "--anonymize removes names, which --write-reports and --write-exemptions need: remove one of them": (
            args.anonymize and (args.write_reports or args.write_exemptions)
        ),
        "--anonymize removes names, which the records of --history need: remove one of them": (
            args.anonymize and args.history
        ),
        "--anonymize removes names, which the tables of -o ndjson and -o parquet need: remove one of them": (
            args.anonymize and any(output.partition("=")[0] in TABLE_FORMATS for output in args.output or ())
        ),
        "--salt needs --anonymize": args.salt is not None and not args.anonymize,
        "--prometheus and --no-cost contradict each other: remove one of them": args.prometheus and args.no_cost,
        "the --prometheus-* options need an address: add --prometheus URL": (
            not args.prometheus
            and any(
                value for name, value in vars(args).items() if name.startswith("prometheus_") and name not in _DEFAULTS
            )
        ),
        "--idle-budget needs the use of GPUs: add --prometheus URL": args.idle_budget is not None
        and not args.prometheus,
        "--discount and --no-cost contradict each other: remove one of them": args.discount and args.no_cost,
        "--price-table and --no-cost contradict each other: remove one of them": args.price_table and args.no_cost,
        "--write-exemptions needs --exemption-owner NAME": (args.write_exemptions and not args.exemption_owner.strip()),
    }
    for reason, applies in reasons.items():
        if applies:
            raise UsageError(reason)


_DEFAULTS: Final = {"prometheus_window", "prometheus_timeout"}


class Rules(NamedTuple):
    """The ruleset, the generation of its policy file, and a remark on the source of the file."""

    ruleset: Ruleset
    generation: str
    remark: str


class Wanted(NamedTuple):
    """The policy flags.

    Attributes:
        file: the policy file.
        installed: whether to use the installed one.
        mode: the mode of all policies, or None.
        select: the selected policies, all if empty.
        ignore: the ignored ones.
        own: where the policies outside the library are.
        catalogue: the instance types of a file, or None.
        cluster: the cluster for which the policy file is read, or None.
    """

    file: Path | None
    installed: bool
    mode: str | None
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    own: OwnPaths = OwnPaths()
    catalogue: CatalogueFile | None = None
    cluster: ClusterIdentity | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all policies are selected."""
        return not self.select and not self.ignore

    def bound(self, config: PolicyConfig) -> Ruleset:
        """Bind a configuration according to the flags."""
        configured = config if self.mode is None else replace(config, mode=self.mode)
        if self.catalogue is not None:
            configured = with_catalogue(configured, self.catalogue)
        # The directories that the installed policy file names are in the Pods of the webhook.
        own = self.own if self.file else replace(self.own, is_off=True)
        catalog = own.catalog(config, self.file)
        only = selected([policy.id for policy in catalog.policies], self.select, self.ignore)
        is_complete = catalog.is_complete and bool(self.file or self.own.directories)
        return bind(catalog.policies, configured, only, closed_families=None if is_complete else library_families())


def rules(wanted: Wanted, connection: Connection | None) -> Rules:
    """Return the rules; `connection` is None for a dump.

    Raises:
        GpugateError: the file is unreadable or invalid, or --with-installed finds none.
    """
    if wanted.file is not None:
        data = read_policy_file(wanted.file)
        ruleset = parse_policy_file(wanted.file, data, wanted.bound, wanted.cluster)
        return Rules(ruleset, generation(data), f"policy file {wanted.file}")
    if wanted.installed and connection is None:
        raise UsageError("--with-installed needs a cluster: remove --from, or set --policy-file")
    installed = (
        installed_policy_file(connection, requested=wanted.installed) if connection else "no policy file was given"
    )
    if isinstance(installed, str):
        ruleset = load_policy_file(None, wanted.bound, cluster=wanted.cluster)
        return Rules(ruleset, SHIPPED, f"{installed}: every policy has its shipped mode")
    ruleset = parse_policy_file(
        Path(f"{installed.source}, {installed.key}"), installed.data, wanted.bound, wanted.cluster
    )
    return Rules(ruleset, generation(installed.data), f"policy file of {installed.source}")


def rights(ruleset: Ruleset, args: argparse.Namespace) -> str:
    """Return the RBAC objects that an audit needs, as YAML.

    Raises:
        UsageError: --service-account has no namespace.
    """
    namespace, slash, name = args.service_account.partition("/")
    if not (namespace and slash and name):
        raise UsageError(f"--service-account {args.service_account}: write NAMESPACE/NAME")
    granted = audit_rbac(ruleset, namespace, name, reports=args.write_reports)
    return "---\n".join(yaml_text.block(obj) for obj in granted)


def costed(scanned: Scan, plan: Plan, ruleset: Ruleset, window: Window) -> AuditReport:
    """Return the report with costs, the use of GPUs and the findings about it, the worst objects first."""
    report, uses = _with_cost(scanned, plan, ruleset, window)
    today = report.time.astimezone(dt.UTC).date()
    report = with_idle_findings(report, uses, ruleset, scanned.exemptions, today)
    return replace(report, audited=worst_first(report.audited))


def _with_cost(scanned: Scan, plan: Plan, ruleset: Ruleset, window: Window) -> tuple[AuditReport, tuple[PodUse, ...]]:
    report = replace(scanned.report, remarks=(*scanned.report.remarks, *plan.remarks))
    if plan.prices is None:
        return report, ()
    config, inventory = ruleset.config, scanned.inventory
    nodes = {node.name for node in inventory.nodes}
    hours = config.platform.working_hours
    measured, usage = measure(plan.server, window, nodes, report.time, hours) if plan.server else (None, None)
    prices = plan.prices.extended(inventory.types)
    money = cost_of(inventory, report.audited, prices, config.platform, config.target, measured)
    if money is None:
        return replace(report, remarks=(*report.remarks, "nodes could not be read: the cost is unknown")), ()
    audited = (
        replace(owner, allocated=money.allocated.get(owner.object, ()), team=money.teams.get(owner.object, ""))
        for owner in report.audited
    )
    report = replace(report, audited=tuple(audited), cost=money.cost, remarks=(*report.remarks, *money.remarks))
    return (with_usage(report, usage, money.uses, window) if usage else report), money.uses


@dataclass(frozen=True, slots=True)
class Asked:
    """The inputs of an audit.

    Attributes:
        ruleset: the ruleset.
        plan: the content of the files that flags name.
        selection: the selection of reported objects.
        outputs: file -> format.
        started: the start, from `time.perf_counter`.
    """

    ruleset: Ruleset
    plan: Plan
    selection: Selection
    outputs: Mapping[str, str]
    started: float


def write(report: AuditReport, covered: Covered, request: Asked, args: argparse.Namespace) -> Sequence[TablesError]:
    """Write all outputs, and return why tables could not be written; each file is written completely or not at all.

    Raises:
        UsageError: a file cannot be written.
    """
    policies = [rule.policy for rule in request.ruleset.rules]
    if args.write_exemptions:
        text = exemptions(report, covered, policies, args.exemption_days, args.exemption_owner)
        options.write(args.write_exemptions, text)
    earlier = request.plan.earlier
    run = Run.of(report, cluster=recorded_name(args, report.cluster.name), selection=selection_flags(args))
    moved = trend(request.plan.runs, run)
    comparison = compare(earlier, report, _looked_at(request.ruleset, request.selection)) if earlier else None
    if args.anonymize:
        names = pseudonyms(report, args.salt, comparison)
        comparison = anonymize_comparison(comparison, names) if comparison else None
        # Its groups have the names of namespaces and teams.
        report, moved = anonymize(report, names), None
    tables = {file: name for file, name in request.outputs.items() if name in TABLE_FORMATS}
    for file, name in request.outputs.items():
        if file in tables:
            continue
        paint = plain.wanted(args.color, is_terminal=not file and sys.stdout.isatty(), environment=os.environ)
        presentation = Presentation(
            policies=policies,
            paint=plain.Paint(paint),
            group_by=args.group_by,
            top=args.top,
            include_passed=args.include_passed,
            hours_per_month=args.hours_per_month,
            comparison=comparison,
            trend=moved,
            amount=Amounts.of(request.ruleset.config.platform.currency),
            idle_budget=args.idle_budget,
            rbac=rights(request.ruleset, args),
            seconds=time.perf_counter() - request.started,
            docs=args.docs_url or "",
        )
        options.write(file, audit_formats.render(name, report, presentation))
    if args.history is not None:
        append(args.history, run)
    return tuple(_write_tables(report, request, args, tables)) if tables else ()


def _write_tables(
    report: AuditReport, request: Asked, args: argparse.Namespace, tables: Mapping[str, str]
) -> Iterator[TablesError]:
    """Write tables last, because a bucket may be unreachable; yield the errors."""
    exemptions = request.ruleset.config.exemptions
    rows = rows_of(report, RunSettings(args.as_mode, selection_flags(args), exemptions, args.idle_budget))
    for path, suffix in tables.items():
        try:
            write_tables(suffix, path, report, rows)
        except TablesError as error:
            yield error


def _looked_at(ruleset: Ruleset, selection: Selection) -> Callable[[ObjectName, str], bool]:
    """Return whether a policy was evaluated on an object; the labels of objects in an earlier audit are unknown."""
    in_force = {rule.policy.id for rule in ruleset.rules}
    return lambda name, policy: policy in in_force and selection.takes(name, {})


_FOUND: Final = 1
_NOTHING: Final = 3
_INCOMPLETE: Final = 4
_ORDER: Final = list(Action)


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    if args.contexts and not args.print_rbac:
        # Before the processes start: what is invalid for one cluster is invalid for all.
        selection(args)
        return audit_contexts(args, run)
    return run(args)


def run(args: argparse.Namespace) -> int:
    """Audit one cluster or dump and return the exit code.

    Raises:
        GpugateError: flags contradict each other, or a file is unreadable or invalid.
    """
    wanted = Wanted(
        args.policy_file,
        args.with_installed,
        None if args.as_mode == "as-is" else args.as_mode,
        args.select,
        args.ignore,
        OwnPaths(tuple(args.policy_path)),
        None if args.catalogue is None else read_catalogue(args.catalogue),
        cluster_of(args),
    )
    if args.print_rbac:
        sys.stdout.write(rights(rules(wanted._replace(installed=False), None).ruleset, args))
        return 0
    try:
        return _audit(args, wanted)
    except CallError as error:
        print(f"error: {error}", file=sys.stderr)
        return _INCOMPLETE


def _audit(args: argparse.Namespace, wanted: Wanted) -> int:
    started = time.perf_counter()
    outputs = options.outputs(args.output or [FORMATS[0]], (*FORMATS, *TABLE_FORMATS))
    for path, suffix in outputs.items():
        if suffix in TABLE_FORMATS:
            check_output(suffix, path)
    beforehand, chosen, flagged = plan(args), selection(args), identity(args)
    throttle = Throttle(args.qps, args.burst)
    with ExitStack() as stack:
        way = connected(args)
        connection, name = way or (None, "")
        if connection:
            stack.callback(connection.close)
        bound_rules = rules(wanted, connection)
        if beforehand.server:
            check_zones(bound_rules.ruleset.config.platform.working_hours)
        result = _scanned(args, bound_rules, chosen, connection, name, throttle)
        window = Window(args.prometheus_window, dict(args.prometheus_metric), tuple(args.prometheus_matcher))
        report = costed(result, beforehand, bound_rules.ruleset, window)
        report = identified(report, flagged, bound_rules.ruleset.config.platform.cluster)
        written = None
        if connection and args.write_reports:
            whole = chosen == Selection() and wanted.is_whole
            written = write_reports(connection, report, throttle, whole=whole)
            report = replace(report, remarks=(*report.remarks, *written.remarks))
    unwritten = write(report, result.covered, Asked(bound_rules.ruleset, beforehand, chosen, outputs, started), args)
    if args.summary_log:
        sys.stderr.write(summary_line(report, written))
    for error in unwritten:
        print(f"error: {error}", file=sys.stderr)
    return _exit_code(report, args, is_incomplete=bool(unwritten) or (written is not None and written.failed > 0))


def _scanned(
    args: argparse.Namespace,
    bound_rules: Rules,
    chosen: Selection,
    connection: Connection | None,
    name: str,
    throttle: Throttle,
) -> Scan:
    with listing(quiet=args.quiet) as page_read:
        now = dt.datetime.now(dt.UTC)
        source = live(connection, name, args, throttle, page_read) if connection else dump(args)
        run = Options(now, bound_rules.generation, chosen, (bound_rules.remark,), new_run_id(now))
        return scan(source, bound_rules.ruleset, run)


def _exit_code(report: AuditReport, args: argparse.Namespace, *, is_incomplete: bool) -> int:
    worst = min((_ORDER.index(audited.action) for audited in report.audited), default=len(_ORDER))
    if args.fail_on != "never" and worst <= _ORDER.index(Action(args.fail_on)):
        return _FOUND
    if args.require_coverage is not None and report.coverage * 100 < args.require_coverage:
        print(
            f"error: the coverage is {report.coverage:.1%}, below the {args.require_coverage:g}% of --require-coverage",
            file=sys.stderr,
        )
        return _INCOMPLETE
    if is_incomplete:
        return _INCOMPLETE
    return 0 if sum(report.counts.values()) else _NOTHING
