"""Findings by namespace and by policy, and the GPUs by pool: a bar beside the numbers of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.report import audit_words as say
from gpugate.webhook.report.audit_html import markup
from gpugate.webhook.report.audit_html.markup import CLASSES, NOTHING, VERBS, Html, bar, legend, tag
from gpugate.webhook.report.audit_tally import Group, grouped
from gpugate.webhook.report.audited import Action

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.webhook.report.audit_presentation import Presentation
    from gpugate.webhook.report.audited import AuditReport

_COUNTED: Final = (Action.BLOCK, Action.MUTATE, Action.WARN)
_SHOWN: Final = (*_COUNTED, Action.RECORD)
# Bars and figures of more rows are read by nobody, and of ten thousand they are most of the file.
MOST_NAMESPACES: Final = 200
_HEADER: Final = ("Denied", "Changed", "Warned")


def namespaces(report: AuditReport, presentation: Presentation) -> Html:
    """Return the table of namespaces in which something was found."""
    groups = [group for group in grouped(report, "namespace") if group.findings]
    if not groups:
        return NOTHING
    shown, others = groups[:MOST_NAMESPACES], groups[MOST_NAMESPACES:]
    most = max(map(_counted, shown))
    rows = [
        markup.row(
            markup.cell(tag("a", group.name, href="#findings")),
            *_counts(group),
            markup.cell(_bar(group, most)),
            markup.number(say.gpus(group.at_risk), sum(group.at_risk.values())),
            markup.number(say.money(group.usd_per_hour), group.usd_per_hour or 0.0),
            markup.number(say.money(group.usd_per_hour, presentation.hours_per_month), group.usd_per_hour or 0.0),
        )
        for group in shown
    ]
    header = ("Namespace", *_HEADER, "Objects", "GPUs at risk", "$ / hour", "$ / month")
    made = markup.table("Objects by namespace, most money at risk first", header, rows, numbers=(1, 2, 3, 5, 6, 7))
    rest = _rest(others, presentation.hours_per_month) if others else NOTHING
    return tag("section", tag("h2", "Namespaces"), _keys(groups), made, rest, id="namespaces")


def policies(report: AuditReport, anchors: Mapping[str, str], titles: Mapping[str, str]) -> Html:
    """Return the table of policies that found something."""
    groups = sorted(
        grouped(report, "policy"), key=lambda group: (*(-group.objects[each] for each in Action), group.name)
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
            markup.number(say.money(group.usd_per_hour), group.usd_per_hour or 0.0),
        )
        for group in groups
    ]
    header = ("Policy", "Mode", *_HEADER, "Objects", "$ / hour at risk")
    made = markup.table("Objects by policy, most denials first", header, rows, numbers=(2, 3, 4, 6))
    return tag("section", tag("h2", "Policies"), _keys(groups), made, id="policies")


def pools(report: AuditReport) -> Html:
    """Return the GPUs of each pool by instance type, held and idle."""
    found = report.cost.pools if report.cost else ()
    if not found:
        return NOTHING
    most = max(pool.gpus for pool in found)
    rows = [
        markup.row(
            markup.cell(pool.node_pool or "(no pool)"),
            markup.cell(tag("code", pool.instance_type)),
            markup.number(f"{pool.nodes:,}"),
            *(
                markup.number(say.number(count), float(count))
                for count in (pool.gpus, pool.held, pool.gpus - pool.held)
            ),
            markup.cell(bar([("held", pool.held), ("idle", pool.gpus - pool.held)], most)),
            markup.number(say.money(pool.usd_per_hour), pool.usd_per_hour or 0.0),
        )
        for pool in found
    ]
    held, whole = sum(pool.held for pool in found), sum(pool.gpus for pool in found)
    header = ("NodePool", "Instance type", "Nodes", "GPUs", "Held", "Idle", "Held and idle", "$ / hour")
    made = markup.table("GPUs by NodePool and instance type", header, rows, numbers=(2, 3, 4, 5, 7))
    keys = legend((("held", "GPUs held", say.number(held)), ("idle", "GPUs idle", say.number(whole - held))))
    return tag("section", tag("h2", "GPUs by pool"), keys, made, id="pools")


def _rest(groups: Sequence[Group], hours: float) -> Html:
    """Say what the namespaces come to that are not in the table; the lists have their objects all the same."""
    counts = ", ".join(f"{sum(group.objects[each] for group in groups):,} {VERBS[each]}" for each in _COUNTED)
    priced = [group.usd_per_hour for group in groups if group.usd_per_hour is not None]
    usd = sum(priced) if priced else None
    text = (
        f"And {len(groups):,} more: objects {counts}; ${say.money(usd)} an hour, ${say.money(usd, hours)} a month at risk. "
        "What was found in each is in the lists above."
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
