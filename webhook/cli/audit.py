"""`gpugate audit`: what the policies would do with the objects of a cluster, and what GPUs that concerns."""

from __future__ import annotations

import datetime as dt
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.audit.live import Throttle
from gpugate.webhook.audit.report_writer import write_reports
from gpugate.webhook.audit.scan import scan
from gpugate.webhook.audit.selection import Options, Selection
from gpugate.webhook.audit.summary_log import summary_line
from gpugate.webhook.cli import audit_output, audit_source, options
from gpugate.webhook.cli.audit_flags import parser
from gpugate.webhook.cli.audit_output import Asked
from gpugate.webhook.cli.audit_plan import plan
from gpugate.webhook.cli.audit_policy import Wanted, rules
from gpugate.webhook.cli.audit_selection import selection
from gpugate.webhook.cli.progress import listing
from gpugate.webhook.cli.selection import selected
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.report.audit_formats import FORMATS
from gpugate.webhook.report.audited import Action

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.webhook.audit.report_writer import Written
    from gpugate.webhook.audit.scan import Scan
    from gpugate.webhook.cli.audit_policy import Rules
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.report.audited import AuditReport

_FOUND: Final = 1
_NOTHING: Final = 3
_INCOMPLETE: Final = 4
_ORDER: Final = list(Action)


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    wanted = Wanted(
        args.policy_file,
        args.with_installed,
        None if args.as_mode == "as-is" else args.as_mode,
        selected([policy.id for policy in CATALOG], args.select, args.ignore),
    )
    if args.print_rbac:
        sys.stdout.write(audit_output.rights(rules(wanted._replace(installed=False), None).ruleset, args))
        return 0
    try:
        return _audit(args, wanted)
    except CallError as error:
        print(f"error: {error}", file=sys.stderr)
        return _INCOMPLETE


def _audit(args: argparse.Namespace, wanted: Wanted) -> int:
    started = time.perf_counter()
    outputs = options.outputs(args.output or [FORMATS[0]], FORMATS)
    beforehand, chosen = plan(args), selection(args)
    throttle = Throttle(args.qps, args.burst)
    with ExitStack() as stack:
        way = audit_source.connected(args)
        connection, name = way or (None, "")
        if connection:
            stack.callback(connection.close)
        found = rules(wanted, connection)
        result = _scanned(args, found, chosen, connection, name, throttle)
        report = audit_output.costed(result, beforehand, found.ruleset)
        written = None
        if connection and args.write_reports:
            whole = chosen == Selection() and wanted.only is None
            written = write_reports(connection, report, throttle, whole=whole)
            report = replace(report, remarks=(*report.remarks, *written.remarks))
    audit_output.write(report, Asked(found.ruleset, beforehand, chosen, outputs, started), args)
    if args.summary_log:
        sys.stderr.write(summary_line(report, written))
    return _exit_code(report, args, written)


def _scanned(
    args: argparse.Namespace,
    found: Rules,
    chosen: Selection,
    connection: Connection | None,
    name: str,
    throttle: Throttle,
) -> Scan:
    with listing(quiet=args.quiet) as told:
        now = dt.datetime.now(dt.UTC)
        source = audit_source.live(connection, name, args, throttle, told) if connection else audit_source.dump(args)
        return scan(source, found.ruleset, Options(now, found.generation, chosen, (found.remark,)))


def _exit_code(report: AuditReport, args: argparse.Namespace, written: Written | None) -> int:
    worst = min((_ORDER.index(each.action) for each in report.audited), default=len(_ORDER))
    if args.fail_on != "never" and worst <= _ORDER.index(Action(args.fail_on)):
        return _FOUND
    if args.require_coverage is not None and report.coverage * 100 < args.require_coverage:
        print(
            f"error: {report.coverage:.1%} of what should have been evaluated was, and --require-coverage asks for "
            f"{args.require_coverage:g}%",
            file=sys.stderr,
        )
        return _INCOMPLETE
    if written is not None and written.failed:
        return _INCOMPLETE
    return 0 if sum(report.counts.values()) else _NOTHING
