"""The audit as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gpugate.webhook.audit import trend as history
from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.tally import actions, grouped, skipped, suppressed
from gpugate.webhook.report.plain import BOLD, CYAN, DIM, GREEN, RED, YELLOW, aligned, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import Audited, AuditReport
    from gpugate.webhook.audit.tally import Sharing
    from gpugate.webhook.audit.words import Amounts
    from gpugate.webhook.report.plain import Paint

_COUNTED: Final = (Action.DENY, Action.MUTATE, Action.WARN)
_COLOURS: Final = {1: (RED, BOLD), 2: (CYAN,), 3: (YELLOW,)}


def group_table(report: AuditReport, presentation: Presentation, by: Sharing) -> Iterator[str]:
    """Yield the number of objects by group; for policies with mode and title, else with GPUs and cost."""
    amount = presentation.amount
    groups = [group for group in grouped(report, by) if group.findings]
    listed = groups[: presentation.top or None]
    titles = {policy.id: policy.title for policy in presentation.policies}
    header = [f"BY {by.upper()}", *(action.value.upper() for action in _COUNTED)]
    header += (
        ["MODE", "TITLE"] if by == "policy" else ["GPUS AT RISK", f"{amount.symbol}/HOUR", f"{amount.symbol}/MONTH"]
    )
    rows = []
    for group in listed:
        row = [group.name, *(str(group.objects[action]) for action in _COUNTED)]
        if by == "policy":
            row += [group.mode.word, titles.get(group.name, "")]
        else:
            month = amount.number(group.usd_per_hour, presentation.hours_per_month)
            row += [say.gpus(group.at_risk), amount.number(group.usd_per_hour), month]
        rows.append(row)
    right = {1, 2, 3} if by == "policy" else {1, 2, 3, 5, 6}
    yield from aligned(header, rows, presentation.paint, right=right, colours=_COLOURS)
    if len(groups) > len(listed):
        yield f"and {len(groups) - len(listed):,} more: --top 0"


def pool_table(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    """Yield the GPUs by NodePool and instance type."""
    amount = presentation.amount
    pools = report.cost.pools if report.cost else ()
    header = ("BY POOL", "INSTANCE TYPE", "NODES", "GPUS", "ALLOCATED", "UNALLOCATED", f"{amount.symbol}/HOUR")
    rows = [
        (
            pool.node_pool or "(none)",
            pool.instance_type,
            f"{pool.nodes:,}",
            *map(say.number, (pool.gpus, pool.allocated, pool.gpus - pool.allocated)),
            amount.number(pool.usd_per_hour),
        )
        for pool in pools[: presentation.top or None]
    ]
    yield from aligned(header, rows, presentation.paint, right={2, 3, 4, 5, 6})


COLOURS: Final = {
    Action.DENY: (RED, BOLD),
    Action.MUTATE: (CYAN,),
    Action.WARN: (YELLOW,),
    Action.RECORD: (DIM,),
    Action.ALLOW: (GREEN,),
}
# Two fit beside the totals and the worst ten objects on a screen of 50 lines.
_MOST_COSTS: Final = 2
_MOST_NAMES: Final = 4


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write the totals, the worst objects and what was not evaluated; at most `top` lines of each."""
    blocks: list[Iterable[str]] = [_totals(report, presentation)]
    if presentation.group_by == "pool":
        blocks.append(pool_table(report, presentation))
    elif presentation.group_by:
        blocks.append(group_table(report, presentation, presentation.group_by))
    blocks += [
        waste(report, presentation),
        _worst(report, presentation),
        pending(report, presentation),
        trend(presentation),
        changes(presentation),
        _short_gaps(report, presentation),
    ]
    blocks.append(_next(report, presentation))
    return "\n".join("".join(f"{line}\n" for line in block) for block in map(list, blocks) if block)


def _totals(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    objects, kinds = sum(report.counts.values()), len(report.counts)
    yield f"{_audited(report, presentation)}: read {say.plural(objects, 'object')} of {say.plural(kinds, 'kind')}"
    yield from _cluster(report)
    yield _actions(report, presentation.paint)
    yield from cost(report, presentation, _MOST_COSTS if presentation.top else 0)


def head(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    """Yield what was audited, the number of objects by kind, and the number of objects by action."""
    yield _audited(report, presentation)
    yield from _cluster(report)
    if report.counts:
        yield plain("  " + "  ".join(f"{kind} {count:,}" for kind, count in report.counts.items()))
    yield ""
    yield _actions(report, presentation.paint)


def _audited(report: AuditReport, presentation: Presentation) -> str:
    cluster = report.cluster
    version = f" ({cluster.version})" if cluster.version else ""
    user = f" as {cluster.user}" if cluster.user else ""
    took = f", {presentation.seconds:.1f} s" if presentation.seconds is not None else ""
    return plain(f"Audited {cluster.name}{version}{user} at {report.time:%Y-%m-%d %H:%M %Z}{took}")


def _cluster(report: AuditReport) -> Iterator[str]:
    identity = say.identity(report)
    if identity:
        yield plain(f"  {identity}")


def _actions(report: AuditReport, paint: Paint) -> str:
    counts = actions(report)
    counted = [f"{paint(action.value, *COLOURS[action])} {paint(f'{counts[action]:,}', BOLD)}" for action in Action]
    exempt = sum(1 for _ in suppressed(report))
    suffix = f"   exempt findings {exempt:,}" if exempt else ""
    total = say.plural(sum(counts.values()), "evaluated object")
    return f"{paint('IF CREATED NOW', BOLD)}  {'   '.join(counted)}   of {total}{suffix}"


def cost(report: AuditReport, presentation: Presentation, most: int = 0) -> Iterator[str]:
    """Yield the cost of GPUs, with at most `most` unbounded and as many wasted objects; 0 for all."""
    total, paint = report.cost, presentation.paint
    if total is None:
        return
    hours, amount = presentation.hours_per_month, presentation.amount
    parts = ", ".join(f"{name} {amount(usd)}" for name, usd in say.spend(total))
    whole = paint(f"{amount(total.spend)}/h", BOLD)
    yield f"{paint('GPU SPEND', BOLD)}  {whole} ({amount(total.spend, hours)} per month): {parts}"
    if report.usage:
        yield plain(
            f"  use in {_window(report.usage.window_seconds)} known for {say.percent(report.usage.coverage)} of the allocated GPUs, "
            f"from {report.usage.source}"
        )
    budget = say.budget(total, presentation.idle_budget, amount)
    if budget:
        yield f"  {paint(budget, RED) if say.is_over(total, presentation.idle_budget) else budget}"
    at_risk = paint(f"{amount(total.at_risk)}/h", BOLD, *((RED,) if total.at_risk else ()))
    yield f"  at risk: {at_risk} ({amount(total.at_risk, hours)} per month) of objects that would be denied"
    for unbounded in total.unbounded[: most or None]:
        worst = f"; at most {amount(unbounded.usd_per_hour)}/h" if unbounded.usd_per_hour is not None else ""
        yield plain(f"  unbounded: {unbounded.object}: {unbounded.reason}{worst}")
    yield from _remainder("unbounded", len(total.unbounded), most)
    for waste in total.wasted[: most or None]:
        price = f", {amount(waste.usd_per_hour)}/h" if waste.usd_per_hour is not None else ""
        yield plain(f"  wasted: {waste.object}: {waste.reason} ({say.number(waste.gpus)} GPUs{price})")
    yield from _remainder("wasted", len(total.wasted), most)
    if total.unpriced_gpus:
        yield f"  {say.number(total.unpriced_gpus)} GPUs have no price, and no total includes them"
    yield plain(f"  prices: {'; '.join(filter(None, (total.prices, amount.rate)))}")


def _window(seconds: int) -> str:
    return f"{seconds / 3600:g} h"


def waste(report: AuditReport, presentation: Presentation, *, evidence: bool = False) -> Iterator[str]:
    """Yield the objects with GPUs that do not work as their cost requires."""
    amount = presentation.amount
    entries = say.waste(report)
    listed = entries[: presentation.top or None]
    if not entries:
        return
    rows = [
        (
            str(audited.object),
            part.use.value,
            say.number(part.gpus),
            amount.number(part.usd_per_hour),
            amount.number(part.usd_per_hour, presentation.hours_per_month),
            *([say.evidence(audited, part)] if evidence else ()),
        )
        for audited, part in listed
    ]
    header = [
        "IDLE AND UNDER-USED",
        "USE",
        "GPUS",
        f"{amount.symbol}/HOUR",
        f"{amount.symbol}/MONTH",
        *(["EVIDENCE"] if evidence else ()),
    ]
    yield from aligned(header, rows, presentation.paint, right={2, 3, 4}, colours={0: (BOLD,)})
    if len(entries) > len(listed):
        yield f"and {len(entries) - len(listed):,} more: --top 0; the evidence: -o wide"


def _remainder(subject: str, count: int, most: int) -> Iterator[str]:
    if most and count > most:
        yield f"  {subject}: {count - most:,} more: -o wide"


def _worst(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    amount = presentation.amount
    worst = [audited for audited in report.audited if audited.findings]
    listed = worst[: presentation.top or None]
    if not worst:
        return
    growing = say.growth(report, amount)
    rows = [_row(audited, growing, amount) for audited in listed]
    header = ("WORST OBJECTS", "ACTION", "POLICIES", "GPUS", f"{amount.symbol}/HOUR")
    yield from aligned(header, rows, presentation.paint, right={3, 4}, colours={0: (BOLD,)})
    if len(worst) > len(listed):
        yield f"and {len(worst) - len(listed):,} more: --top 0, or every finding with -o wide"


def _row(audited: Audited, growing: Mapping[str, str], amount: Amounts) -> tuple[str, ...]:
    first, *others = say.policies(audited)
    return (
        str(audited.object),
        audited.action.value,
        f"{first} +{len(others)}" if others else first,
        say.gpus_of(audited.allocated),
        say.price(audited, growing, amount),
    )


def pending(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    """Yield the Pods that wait for a node, by cause."""
    if not report.pending:
        return
    yield f"{presentation.paint('PENDING', BOLD)}  {say.waiting(report)}"
    listed = report.pending[: presentation.top or None]
    for group in listed:
        owners = [f"{owner.object} ({owner.pods:,})" for owner in group.owners]
        more = f" and {len(owners) - _MOST_NAMES} more" if len(owners) > _MOST_NAMES else ""
        yield plain(f"  {', '.join(owners[:_MOST_NAMES])}{more}: {group.reason}")
        yield plain(f"    fix: {group.hint}")
    if len(report.pending) > len(listed):
        yield f"  and {len(report.pending) - len(listed):,} more causes: --top 0"


def changes(presentation: Presentation) -> Iterator[str]:
    """Yield the difference to an earlier audit."""
    comparison, paint = presentation.comparison, presentation.paint
    if comparison is None:
        return
    yield (
        f"{paint('CHANGES', BOLD)} since {comparison.since:%Y-%m-%d %H:%M %Z}: "
        f"{paint(f'+{len(comparison.new):,} new', RED)}  {paint(f'-{len(comparison.fixed):,} fixed', GREEN)}  "
        f"={comparison.unchanged:,} unchanged"
    )
    for sign, findings in ("+", comparison.new), ("-", comparison.fixed):
        for changed in findings[: presentation.top or None]:
            yield plain(f"  {sign} {changed.object}: {changed.finding.policy}: {changed.finding.message}")
        if presentation.top and len(findings) > presentation.top:
            yield f"  {sign} and {len(findings) - presentation.top:,} more: --top 0"


def trend(presentation: Presentation) -> Iterator[str]:
    """Yield how the figures moved over earlier audits, and what is new, gone or changed."""
    moving, paint, amount = presentation.trend, presentation.paint, presentation.amount
    if moving is None:
        return
    header = ("TREND", f"{moving.base.time:%Y-%m-%d %H:%M}", "NOW", "CHANGE", "SINCE LAST", "")
    rows = [
        (
            figure.name,
            history.value(figure.base, figure.unit, amount),
            history.value(figure.now, figure.unit, amount),
            history.change(figure, figure.base, amount),
            history.change(figure, figure.last, amount),
            history.sparkline(figure),
        )
        for figure in moving.figures
    ]
    yield from aligned(header, rows, paint, right={1, 2, 3, 4}, colours={0: (BOLD,)})
    yield plain(
        f"  {say.plural(len(moving.earlier), 'earlier audit')}, the first of {moving.earlier[0].time:%Y-%m-%d %H:%M %Z}"
    )
    yield from (plain(f"  note: {caveat}") for caveat in moving.caveats)
    listed = moving.moved[: presentation.top or None]
    yield from (plain(f"  {history.moved_text(moved, amount)}") for moved in listed)
    if len(moving.moved) > len(listed):
        yield f"  and {len(moving.moved) - len(listed):,} more changes: --top 0"


def gaps(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    """Yield what was not evaluated, exemptions to remove, and remarks."""
    yield from _gaps(report, presentation, say.not_evaluated(report))


def _short_gaps(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    short = (replace(gap, what=_few(gap.what)) for gap in report.not_evaluated)
    limited = replace(report, not_evaluated=tuple(short))
    phrases = say.not_evaluated(limited)
    listed = phrases[: presentation.top or None]
    remainder = [f"{len(phrases) - len(listed):,} more: -o wide"] if len(phrases) > len(listed) else []
    yield from _gaps(limited, presentation, [*listed, *remainder])


def _few(text: str) -> str:
    """Shorten a list of names."""
    names = text.split(", ")
    return (
        text
        if len(names) <= _MOST_NAMES + 1
        else f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
    )


def _gaps(report: AuditReport, presentation: Presentation, phrases: Iterable[str]) -> Iterator[str]:
    paint = presentation.paint
    policies = skipped(report)
    if report.not_evaluated or policies or report.coverage < 1:
        covered = f"  coverage {say.percent(report.coverage)}" if report.coverage < 1 else ""
        yield f"{paint('NOT EVALUATED', BOLD)}{covered}"
    yield from (f"  {plain(phrase)}" for phrase in phrases)
    for (policy, reason), count in policies.most_common(presentation.top or None):
        yield plain(f"  {policy}: {reason} ({say.plural(count, 'object')})")
    yield from (plain(f"expired exemption: {phrase}") for phrase in report.expired)
    yield from (plain(f"unused exemption: {phrase}") for phrase in report.unused)
    yield from (plain(remark) for remark in report.remarks)


def _next(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    names = [group.name for group in grouped(report, "policy")]
    groups = " · --group-by policy (or namespace, kind, owner, pool)" if names and not presentation.group_by else ""
    exempt = " · --write-exemptions FILE" if actions(report)[Action.DENY] else ""
    explain = f" · gpugate explain {plain(names[0])}" if names else ""
    yield presentation.paint(f"More: -o wide · -o html=audit.html{groups}{exempt}{explain}", DIM)
