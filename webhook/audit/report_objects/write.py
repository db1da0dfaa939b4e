"""Brings the report objects of a cluster into line with an audit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit.report_objects.limits import Limits
from gpugate.webhook.audit.report_objects.outcome import Written
from gpugate.webhook.audit.report_objects.stored import stored_reports
from gpugate.webhook.audit.report_objects.sync import Sync
from gpugate.webhook.audit.report_objects.writer import FORBIDDEN, Writer
from gpugate.webhook.cluster.discovery import path_of
from gpugate.webhook.cluster.errors import ApiError, CallError, NotServedError
from gpugate.webhook.report.report_kinds import REPORT_KINDS

if TYPE_CHECKING:
    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.audit.sources.throttle import Throttle
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.report.audited import AuditReport
    from gpugate.webhook.report.report_kinds import ReportKinds

_GROUPS: Final = " nor ".join(kinds.namespaced.group for kinds in REPORT_KINDS)
_DEFAULT: Final = Limits()


def write_reports(
    connection: Connection, report: AuditReport, throttle: Throttle, *, whole: bool, limits: Limits = _DEFAULT
) -> Written:
    """Write a report for each object with findings, where it says something else than before; delete those of no more.

    Reports of others are never touched. What is wrong with single reports is told in the remarks, and so is what ends it
    all: whatever was written stays, and the next audit goes on from there.

    Args:
        connection: the cluster that was audited.
        report: the audit, by all rules in force.
        throttle: what each call waits for.
        whole: whether every object was to be audited. Only then, and when everything could be read, is an object that
            the audit does not know one that is gone.
        limits: of reports, results and texts.
    """
    try:
        found = _served(connection)
    except CallError as error:
        return _ended(Written(""), error)
    if not found:
        missing = f"reports are not written: the cluster has neither {_GROUPS}; install the definitions of one of them"
        return Written("", remarks=(missing,))
    kinds, *others = found
    writer = Writer(connection, kinds, throttle)
    try:
        stored = dict(stored_reports(connection, kinds, throttle))
        sync = Sync(writer, kinds, report, limits)
        sync.put(stored)
        sync.delete(stored, whole=whole)
        for other in others:
            _empty(Writer(connection, other, throttle, writer.tally))
    except CallError as error:
        return _ended(writer.tally.written(kinds.namespaced.group), error)
    return writer.tally.written(kinds.namespaced.group)


def _served(connection: Connection) -> list[ReportKinds]:
    """Return the groups of which a cluster has both kinds, the one to be written first."""
    return [kinds for kinds in REPORT_KINDS if all(_serves(connection, kind) for kind in kinds.both)]


def _serves(connection: Connection, kind: Kind) -> bool:
    try:
        path_of(connection, kind)
    except NotServedError:
        return False
    return True


def _empty(writer: Writer) -> None:
    """Delete what was written when the cluster did not yet have the group that comes before this one."""
    try:
        for key, _ in list(stored_reports(writer.connection, writer.kinds, writer.throttle)):
            writer.delete(key)
    except ApiError as error:
        if error.code != FORBIDDEN:
            raise
        writer.tally.notes.append(f"reports of {writer.kinds.namespaced.group} may be left from earlier: {error}")


def _ended(written: Written, error: CallError) -> Written:
    if isinstance(error, ApiError) and error.code == FORBIDDEN:
        sentence = f"reports are not written: gpugate may not list them, see `gpugate audit --print-rbac`: {error}"
    else:
        sentence = f"reports are not written to the end: {error}"
    return replace(written, failed=written.failed + 1, remarks=(*written.remarks, sentence))
