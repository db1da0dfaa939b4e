"""An audit as Markdown for a job summary, an issue or a comment in GitHub and GitLab."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit import trend as history
from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.tally import actions, grouped, skipped
from gpugate.webhook.report.markdown import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport
    from gpugate.webhook.audit.tally import Group
    from gpugate.webhook.audit.words import Amounts

# GitHub limits a job summary to 1 MiB and a comment to 65,536 characters; this stays far below the first limit.
_MOST_ROWS: Final = 200
_PLAIN_ID: Final = re.compile(r"[a-z0-9/-]+")
_COUNTED: Final = (Action.DENY, Action.MUTATE, Action.WARN)


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write an audit."""
    return "".join(f"{line}\n" for line in _lines(report, presentation))


def _lines(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    yield from (f"## gpugate audit: {escaped(report.cluster.name)}", "")
    yield from (f"{report.time:%Y-%m-%d %H:%M %Z}, coverage {say.percent(report.coverage)}", "")
    identity = say.identity(report)
    if identity:
        yield from (escaped(identity), "")
    counts = actions(report)
    yield "| " + " | ".join(say.CONSEQUENCES[action] for action in Action) + " |"
    yield "|" + "---:|" * len(Action)
    yield "| " + " | ".join(f"{counts[action]:,}" for action in Action) + " |"
    yield from _cost(report, presentation)
    yield from _groups("namespace", [g for g in grouped(report, "namespace") if g.findings], presentation.amount)
    yield from _groups("policy", grouped(report, "policy"), presentation.amount)
    yield from _worst(report, presentation.amount)
    yield from _pending(report)
    yield from _trend(presentation)
    yield from _changes(presentation)
    yield from _gaps(report)


def _pending(report: AuditReport) -> Iterator[str]:
    if report.pending:
        yield from ("", f"**Pending Pods:** {say.waiting(report)}.", "")
        yield from ("| Pods | owner of most | reason | fix |", "|---:|---|---|---|")
    for group in report.pending[:_MOST_ROWS]:
        owner = escaped(str(group.owners[0].object))
        yield f"| {group.pods:,} | {owner} | {escaped(group.reason)} | {escaped(group.hint)} |"


def _cost(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    cost = report.cost
    if cost is None:
        return
    hours, amount = presentation.hours_per_month, presentation.amount
    yield from ("", f"**GPU spend: {amount(cost.spend)} per hour** ({amount(cost.spend, hours)} per month).")
    parts = ", ".join(f"{name} {amount(usd)}" for name, usd in say.spend(cost))
    yield f"Per hour: {parts}. {escaped('; '.join(filter(None, (cost.prices, amount.rate))))}"
    budget = say.budget(cost, presentation.idle_budget, amount)
    if budget:
        yield from ("", f"**{budget[:1].upper()}{budget[1:]}.**")
    yield from (
        "",
        f"Objects that would be denied: {amount(cost.at_risk)} per hour ({amount(cost.at_risk, hours)} per month).",
    )
    waste = say.waste(report)
    if waste:
        yield from (
            "",
            f"| object | use | GPUs | {amount.symbol}/hour | {amount.symbol}/month | evidence |",
            "|---|---|---:|---:|---:|---|",
        )
    for audited, part in waste[:_MOST_ROWS]:
        figures = (
            f"{say.number(part.gpus)} | {amount.number(part.usd_per_hour)} | {amount.number(part.usd_per_hour, hours)}"
        )
        yield f"| {escaped(str(audited.object))} | {part.use.value} | {figures} | {escaped(say.evidence(audited, part))} |"
    if len(waste) > _MOST_ROWS:
        yield from ("", f"and {len(waste) - _MOST_ROWS:,} more")
    if cost.unbounded:
        yield ""
    for unbounded in cost.unbounded:
        worst = f"; at most {amount(unbounded.usd_per_hour)} per hour" if unbounded.usd_per_hour is not None else ""
        yield f"- unbounded: {escaped(str(unbounded.object))}: {escaped(unbounded.reason)}{worst}"


def _groups(name: str, groups: list[Group], amount: Amounts) -> Iterator[str]:
    if not groups:
        return
    yield from (
        "",
        f"| {name} | denied | mutated | warned | GPUs at risk | {amount.symbol}/hour |",
        "|---|---:|---:|---:|---|---:|",
    )
    for group in groups[:_MOST_ROWS]:
        counts = " | ".join(f"{group.objects[action]:,}" for action in _COUNTED)
        cell = _id(group.name) if name == "policy" else escaped(group.name)
        yield f"| {cell} | {counts} | {escaped(say.gpus(group.at_risk))} | {amount.number(group.usd_per_hour)} |"
    if len(groups) > _MOST_ROWS:
        yield from ("", f"and {len(groups) - _MOST_ROWS:,} more")


def _worst(report: AuditReport, amount: Amounts) -> Iterator[str]:
    worst = [audited for audited in report.audited if audited.findings]
    growing = say.growth(report, amount)
    if worst:
        yield from (
            "",
            f"| object | action | policies | GPUs | {amount.symbol}/hour | first fix |",
            "|---|---|---|---|---:|---|",
        )
    for audited in worst[:_MOST_ROWS]:
        policies = ", ".join(map(_id, say.policies(audited)))
        allocated = f"{escaped(say.gpus_of(audited.allocated))} | {say.price(audited, growing, amount)}"
        fix = escaped(say.first_fix(audited))
        yield f"| {escaped(str(audited.object))} | {audited.action.value} | {policies} | {allocated} | {fix} |"
    if len(worst) > _MOST_ROWS:
        yield from ("", f"and {len(worst) - _MOST_ROWS:,} more")


def _id(policy: str) -> str:
    return f"`{policy}`" if _PLAIN_ID.fullmatch(policy) else escaped(policy)


def _trend(presentation: Presentation) -> Iterator[str]:
    moving, amount = presentation.trend, presentation.amount
    if moving is None:
        return
    base = f"{moving.base.time:%Y-%m-%d %H:%M %Z}"
    yield from (
        "",
        f"| figure | {base} | now | change | since the last audit | trend |",
        "|---|---:|---:|---:|---:|---|",
    )
    for figure in moving.figures:
        values = [history.value(earlier, figure.unit, amount) for earlier in (figure.base, figure.now)]
        values += [history.change(figure, earlier, amount) for earlier in (figure.base, figure.last)]
        yield f"| {figure.name} | {' | '.join(values)} | {history.sparkline(figure)} |"
    if moving.moved or moving.caveats:
        yield ""
    yield from (f"- note: {escaped(caveat)}" for caveat in moving.caveats)
    yield from (f"- {escaped(history.moved_text(moved, amount))}" for moved in moving.moved[:_MOST_ROWS])


def _changes(presentation: Presentation) -> Iterator[str]:
    since = presentation.comparison
    if since:
        yield from ("", f"Since {since.since:%Y-%m-%d %H:%M %Z}: {len(since.new):,} new, {len(since.fixed):,} fixed, ")
        yield f"{since.unchanged:,} unchanged."


def _gaps(report: AuditReport) -> Iterator[str]:
    lines = say.not_evaluated(report)
    lines += [f"{policy}: {reason} ({say.plural(n, 'object')})" for (policy, reason), n in skipped(report).items()]
    if lines:
        yield from ("", "<details><summary>Not evaluated</summary>", "")
        yield from (f"- {escaped(line)}" for line in lines[:_MOST_ROWS])
        yield from ("", "</details>")
    others = [f"expired exemption: {exemption}" for exemption in report.expired]
    others += [f"unused exemption: {exemption}" for exemption in report.unused]
    if others or report.remarks:
        yield from ("", *(f"- {escaped(line)}" for line in (*others, *report.remarks)))
