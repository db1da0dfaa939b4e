"""Findings by namespace and by policy, and the GPUs by pool: a bar beside the numbers of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.formats.html import markup
from gpugate.webhook.audit.formats.html.markup import CLASSES, NOTHING, VERBS, Html, bar, legend, tag
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.tally import Group, grouped, idle_or_parked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport, Spend
    from gpugate.webhook.audit.words import Amounts

_COUNTED: Final = (Action.DENY, Action.MUTATE, Action.WARN)
_SHOWN: Final = (*_COUNTED, Action.RECORD)
# More rows are not useful to a reader, and ten thousand of them would be most of the file.
MOST_NAMESPACES: Final = 200
_HEADER: Final = ("Denied", "Mutated", "Warned")


def namespaces(report: AuditReport, presentation: Presentation) -> Html:
    """Return the table of namespaces with findings."""
    amount = presentation.amount
    groups = [group for group in grouped(report, "namespace") if group.findings]
    if not groups:
        return NOTHING
    listed, others = groups[:MOST_NAMESPACES], groups[MOST_NAMESPACES:]
    most = max(map(_counted, listed))
    rows = [
        markup.row(
            markup.cell(tag("a", group.name, href="#findings")),
            *_counts(group),
            markup.cell(_bar(group, most)),
            markup.number(say.gpus(group.at_risk), sum(group.at_risk.values())),
            markup.number(amount.number(group.usd_per_hour), group.usd_per_hour or 0.0),
            markup.number(amount.number(group.usd_per_hour, presentation.hours_per_month), group.usd_per_hour or 0.0),
        )
        for group in listed
    ]
    header = ("Namespace", *_HEADER, "Objects", "GPUs at risk", f"{amount.symbol} / hour", f"{amount.symbol} / month")
    body = markup.table("Objects by namespace, highest cost at risk first", header, rows, numbers=(1, 2, 3, 5, 6, 7))
    remainder = _remainder(others, presentation) if others else NOTHING
    return tag("section", tag("h2", "Namespaces"), _keys(groups), body, remainder, id="namespaces")


_WORDS: Final = {"team": "Team", "namespace": "Namespace", "pool": "NodePool"}
_EMPTY: Final = {"team": "(no team)", "namespace": "(cluster)", "pool": "(no pool)"}


def spending(report: AuditReport, presentation: Presentation) -> Html:
    """Return the cost by team, namespace and NodePool, each with its parts as a bar."""
    amount = presentation.amount
    entries = report.cost.spending if report.cost else ()
    if not entries:
        return NOTHING
    tables = []
    for by, title in _WORDS.items():
        of_group = [entry for entry in entries if entry.by == by]
        listed, most = of_group[:MOST_NAMESPACES], max((entry.usd_per_hour or 0.0 for entry in of_group), default=0.0)
        rows = [
            markup.row(
                markup.cell(entry.name or _EMPTY[by]),
                markup.number(say.number(entry.gpus), entry.gpus),
                markup.cell(bar(_parts(entry), most)),
                markup.number(amount.number(_wasted(entry)), _wasted(entry) or 0.0),
                markup.number(amount.number(entry.usd_per_hour), entry.usd_per_hour or 0.0),
                markup.number(
                    amount.number(entry.usd_per_hour, presentation.hours_per_month), entry.usd_per_hour or 0.0
                ),
            )
            for entry in listed
        ]
        header = (
            title,
            "GPUs",
            "Spend",
            f"Idle or parked {amount.symbol} / hour",
            f"{amount.symbol} / hour",
            f"{amount.symbol} / month",
        )
        tables.append(markup.table(f"Spend by {title.lower()}", header, rows, numbers=(1, 3, 4, 5)))
        if len(of_group) > len(listed):
            tables.append(tag("p", f"And {len(of_group) - len(listed):,} more in the JSON document.", class_="intro"))
    return tag("section", tag("h2", "Spend by team, namespace and NodePool"), *tables, id="spending")


def _parts(entry: Spend) -> list[markup.Part]:
    parts = [(part.use.value, part.usd_per_hour or 0.0) for part in entry.used]
    remainder = (entry.usd_per_hour or 0.0) - sum(usd for _, usd in parts)
    name = "unallocated" if entry.by == "pool" and entry.used else "allocated"
    return [*parts, (name, max(remainder, 0.0))]


def _wasted(entry: Spend) -> float | None:
    return idle_or_parked(entry.used) if entry.used else None


def idle(report: AuditReport, presentation: Presentation) -> Html:
    """Return the objects with GPUs that do not work as their cost requires, with the evidence."""
    amount = presentation.amount
    entries = say.waste(report)
    if not entries:
        return NOTHING
    listed, others = entries[:MOST_NAMESPACES], entries[MOST_NAMESPACES:]
    rows = [
        markup.row(
            markup.cell(str(audited.object)),
            markup.cell(tag("span", part.use.value, class_=f"mode {part.use.value}")),
            markup.number(say.number(part.gpus), part.gpus),
            markup.number(amount.number(part.usd_per_hour), part.usd_per_hour or 0.0),
            markup.number(amount.number(part.usd_per_hour, presentation.hours_per_month), part.usd_per_hour or 0.0),
            markup.cell(
                say.evidence(audited, part), tag("small", tag("code", audited.gpu_use.query if audited.gpu_use else ""))
            ),
        )
        for audited, part in listed
    ]
    header = (
        "Object",
        "Use",
        "GPUs",
        f"{amount.symbol} / hour",
        f"{amount.symbol} / month",
        "Evidence, and a query for Grafana",
    )
    body = markup.table("Idle and under-used GPUs, highest cost first", header, rows, numbers=(2, 3, 4))
    usd = sum(part.usd_per_hour or 0.0 for _, part in others)
    more = f"And {len(others):,} more: {amount(usd)} per hour."
    return tag(
        "section",
        tag("h2", "Idle and under-used GPUs"),
        body,
        tag("p", more, class_="intro") if others else NOTHING,
        id="idle",
    )


def policies(report: AuditReport, anchors: Mapping[str, str], titles: Mapping[str, str], amount: Amounts) -> Html:
    """Return the table of policies with findings."""
    groups = sorted(
        grouped(report, "policy"), key=lambda group: (*(-group.objects[action] for action in Action), group.name)
    )
    if not groups:
        return NOTHING
    most = max(map(_counted, groups))
    rows = [
        markup.row(
            markup.cell(tag("a", group.name, href=f"#{anchors[group.name]}"), tag("small", titles.get(group.name, ""))),
            markup.cell(tag("span", group.mode.word, class_=f"mode {group.mode.word}")),
            *_counts(group),
            markup.cell(_bar(group, most)),
            markup.number(amount.number(group.usd_per_hour), group.usd_per_hour or 0.0),
        )
        for group in groups
    ]
    header = ("Policy", "Mode", *_HEADER, "Objects", f"{amount.symbol} / hour at risk")
    body = markup.table("Objects by policy, most denials first", header, rows, numbers=(2, 3, 4, 6))
    return tag("section", tag("h2", "Policies"), _keys(groups), body, id="policies")


def pools(report: AuditReport, amount: Amounts) -> Html:
    """Return the allocated and unallocated GPUs by NodePool and instance type."""
    uses = report.cost.pools if report.cost else ()
    if not uses:
        return NOTHING
    most = max(pool.gpus for pool in uses)
    rows = [
        markup.row(
            markup.cell(pool.node_pool or "(no pool)"),
            markup.cell(tag("code", pool.instance_type)),
            markup.number(f"{pool.nodes:,}"),
            *(
                markup.number(say.number(count), float(count))
                for count in (pool.gpus, pool.allocated, pool.gpus - pool.allocated)
            ),
            markup.cell(bar([("allocated", pool.allocated), ("unallocated", pool.gpus - pool.allocated)], most)),
            markup.number(amount.number(pool.usd_per_hour), pool.usd_per_hour or 0.0),
        )
        for pool in uses
    ]
    allocated, whole = sum(pool.allocated for pool in uses), sum(pool.gpus for pool in uses)
    header = (
        "NodePool",
        "Instance type",
        "Nodes",
        "GPUs",
        "Allocated",
        "Unallocated",
        "Share",
        f"{amount.symbol} / hour",
    )
    body = markup.table("GPUs by NodePool and instance type", header, rows, numbers=(2, 3, 4, 5, 7))
    keys = legend(
        (
            ("allocated", "GPUs allocated", say.number(allocated)),
            ("unallocated", "GPUs unallocated", say.number(whole - allocated)),
        )
    )
    return tag("section", tag("h2", "GPUs by pool"), keys, body, id="pools")


def _remainder(groups: Sequence[Group], presentation: Presentation) -> Html:
    """Return the totals of the namespaces that are not in the table."""
    hours, amount = presentation.hours_per_month, presentation.amount
    counts = ", ".join(f"{sum(group.objects[action] for group in groups):,} {VERBS[action]}" for action in _COUNTED)
    priced = [group.usd_per_hour for group in groups if group.usd_per_hour is not None]
    usd = sum(priced) if priced else None
    text = (
        f"And {len(groups):,} more: objects {counts}; at risk {amount(usd)} per hour, {amount(usd, hours)} per month. "
        "The lists above contain all their findings."
    )
    return tag("p", text, class_="intro")


def _counts(group: Group) -> list[Html]:
    return [markup.number(f"{group.objects[action]:,}") for action in _COUNTED]


def _counted(group: Group) -> int:
    return sum(group.objects[action] for action in _SHOWN)


def _keys(groups: Sequence[Group]) -> Html:
    present = [action for action in _SHOWN if any(group.objects[action] for group in groups)]
    return legend((CLASSES[action], VERBS[action], "") for action in present)


def _bar(group: Group, most: int) -> Html:
    return bar([(CLASSES[action], group.objects[action]) for action in _SHOWN], most)


def pending(report: AuditReport) -> Html:
    """Return the Pods that wait for a node, by cause."""
    if not report.pending:
        return NOTHING
    rows = [
        markup.row(
            markup.number(f"{group.pods:,}", group.pods),
            markup.cell(", ".join(f"{owner.object} ({owner.pods:,})" for owner in group.owners)),
            markup.cell(group.reason),
            markup.cell(group.hint),
        )
        for group in report.pending
    ]
    waiting = say.waiting(report)
    intro = tag("p", f"{waiting[0].upper()}{waiting[1:]}.", class_="intro")
    table = markup.table("Pending Pods", ("Pods", "Owners", "Reason", "Fix"), rows, numbers=(0,))
    return tag("section", tag("h2", "Pending Pods"), intro, table, id="pending")
