"""An audit as one log line: JSON in ASCII, with the common fields of the server's log."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.audit.live import ABSENCE
from gpugate.webhook.audit.tally import actions, uses

if TYPE_CHECKING:
    from gpugate.webhook.audit.model import AuditReport
    from gpugate.webhook.audit.report_writer import Written

_LONGEST: Final = 253
_MOST: Final = 8


def summary_line(report: AuditReport, written: Written | None = None) -> str:
    """Return the line for an audit and its report objects; it contains no content of objects.

    The level is `warning` if something could not be read or written, else `info`.
    """
    time = report.time.astimezone(dt.UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    # Kinds that the cluster does not serve are no problem.
    unread = [gap for gap in report.not_evaluated if gap.reason != ABSENCE]
    incomplete = bool(unread) or (written is not None and written.failed > 0)
    fields: dict[str, Any] = {
        "time": f"{time}Z",
        "level": "warning" if incomplete else "info",
        "message": "audit",
        "generation": report.generation,
        "cluster": _short(report.cluster.name),
        "cluster_id": report.cluster.id,
        "region": report.cluster.region,
        "run": report.run_id,
        "objects": sum(report.counts.values()),
        **{action.value: count for action, count in actions(report).items()},
        "coverage": round(report.coverage, 4),
        "not_evaluated": _first([f"{gap.what}: {gap.reason}" for gap in unread]),
    }
    if report.cost is not None:
        fields["usd_per_hour"] = round(report.cost.spend, 2)
        fields["usd_per_hour_at_risk"] = round(report.cost.at_risk, 2)
        fields |= {f"usd_per_hour_{name.replace('-', '_')}": round(usd, 2) for name, usd in uses(report.cost)}
    if written is not None:
        fields["reports"] = written.group
        fields["reports_created"] = written.created
        fields["reports_changed"] = written.changed
        fields["reports_unchanged"] = written.unchanged
        fields["reports_deleted"] = written.deleted
        fields["reports_failed"] = written.failed
    fields["remarks"] = _first(list(dict.fromkeys((*report.remarks, *(written.remarks[1:] if written else ())))))
    # Other characters than ASCII are escaped, so that no text can control a terminal.
    return f"{json.dumps(fields, separators=(',', ':'))}\n"


def _first(texts: list[str]) -> list[str]:
    listed = [_short(text) for text in texts[:_MOST]]
    return listed if len(texts) <= _MOST else [*listed, f"and {len(texts) - _MOST} more"]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
