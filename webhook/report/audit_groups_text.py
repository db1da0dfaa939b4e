"""The tables of an audit that count objects: by namespace, by policy and so on, and GPUs by pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.report import audit_words as say
from gpugate.webhook.report.audit_tally import grouped
from gpugate.webhook.report.audited import Action
from gpugate.webhook.report.colour import BOLD, CYAN, RED, YELLOW
from gpugate.webhook.report.columns import aligned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.report.audit_presentation import Presentation
    from gpugate.webhook.report.audit_tally import Sharing
    from gpugate.webhook.report.audited import AuditReport

_COUNTED: Final = (Action.BLOCK, Action.MUTATE, Action.WARN)
_COLOURS: Final = {1: (RED, BOLD), 2: (CYAN,), 3: (YELLOW,)}


def group_table(report: AuditReport, presentation: Presentation, by: Sharing) -> Iterator[str]:
    """Yield the objects by what they share; a policy says its mode and title, the others GPUs and money."""
    groups = [group for group in grouped(report, by) if group.findings]
    shown = groups[: presentation.top or None]
    titles = {policy.id: policy.title for policy in presentation.policies}
    header = [f"BY {by.upper()}", *(action.value.upper() for action in _COUNTED)]
    header += ["MODE", "WHAT"] if by == "policy" else ["GPUS AT RISK", "$/HOUR", "$/MONTH"]
    rows = []
    for group in shown:
        row = [group.name, *(str(group.objects[action]) for action in _COUNTED)]
        if by == "policy":
            row += [group.mode.word, titles.get(group.name, "")]
        else:
            month = say.money(group.usd_per_hour, presentation.hours_per_month)
            row += [say.gpus(group.at_risk), say.money(group.usd_per_hour), month]
        rows.append(row)
    right = {1, 2, 3} if by == "policy" else {1, 2, 3, 5, 6}
    yield from aligned(header, rows, presentation.paint, right=right, colours=_COLOURS)
    if len(groups) > len(shown):
        yield f"and {len(groups) - len(shown):,} more: --group-by {by} --top 0"


def pool_table(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    """Yield the GPUs of each pool by instance type."""
    pools = report.cost.pools if report.cost else ()
    header = ("BY POOL", "INSTANCE TYPE", "NODES", "GPUS", "HELD", "IDLE", "$/HOUR")
    rows = [
        (
            pool.node_pool or "(none)",
            pool.instance_type,
            f"{pool.nodes:,}",
            *map(say.number, (pool.gpus, pool.held, pool.gpus - pool.held)),
            say.money(pool.usd_per_hour),
        )
        for pool in pools[: presentation.top or None]
    ]
    yield from aligned(header, rows, presentation.paint, right={2, 3, 4, 5, 6})
