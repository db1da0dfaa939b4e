"""The audit as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.report import audit_words as say
from gpugate.webhook.report.audit_tally import actions, grouped, skipped, suppressed
from gpugate.webhook.report.audited import Action
from gpugate.webhook.report.plain import BOLD, CYAN, DIM, GREEN, RED, YELLOW, aligned, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.webhook.report.audit_presentation import Presentation
    from gpugate.webhook.report.audit_tally import Sharing
    from gpugate.webhook.report.audited import Audited, AuditReport

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


COLOURS: Final = {
    Action.BLOCK: (RED, BOLD),
    Action.MUTATE: (CYAN,),
    Action.WARN: (YELLOW,),
    Action.RECORD: (DIM,),
    Action.COMPLY: (GREEN,),
}
_LABELS: Final = {
    Action.BLOCK: "BLOCK",
    Action.MUTATE: "MUTATE",
    Action.WARN: "WARN",
    Action.RECORD: "record",
    Action.COMPLY: "compliant",
}
_MOST_FIX: Final = 60


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write an audit."""
    blocks = [head(report, presentation)]
    if presentation.group_by == "pool":
        blocks.append(pool_table(report, presentation))
    elif presentation.group_by:
        blocks.append(group_table(report, presentation, presentation.group_by))
    elif any(audited.findings for audited in report.audited):
        blocks += [group_table(report, presentation, by) for by in ("namespace", "policy")]
    blocks += [
        cost(report, presentation),
        _worst(report, presentation),
        changes(presentation),
        gaps(report, presentation),
    ]
    blocks.append(_next(report, presentation))
    return "\n".join("".join(f"{line}\n" for line in block) for block in map(list, blocks) if block)


def head(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    """Yield what was audited, and how many objects would be what."""
    paint, cluster = presentation.paint, report.cluster
    version = f" ({cluster.version})" if cluster.version else ""
    user = f" as {cluster.user}" if cluster.user else ""
    took = f", {presentation.seconds:.1f} s" if presentation.seconds is not None else ""
    yield plain(f"Audited {cluster.name}{version}{user} at {report.time:%Y-%m-%d %H:%M %Z}{took}")
    if report.counts:
        yield plain("  " + "  ".join(f"{kind} {count:,}" for kind, count in report.counts.items()))
    yield ""
    yield paint("If these policies were enforced now", BOLD)
    counts = actions(report)
    shown = [f"{paint(_LABELS[action], *COLOURS[action])} {paint(f'{counts[action]:,}', BOLD)}" for action in Action]
    exempt = sum(1 for _ in suppressed(report))
    passing = f"   exempt findings {exempt:,}" if exempt else ""
    yield f"  would {'   '.join(shown)}{passing}"


def cost(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    """Yield the GPU money."""
    money, paint = report.cost, presentation.paint
    if money is None:
        return
    hours = presentation.hours_per_month
    month = f"${say.money(money.at_risk, hours)} a month of {hours:g} h"
    at_risk = paint(f"${say.money(money.at_risk)}/h", BOLD, *((RED,) if money.at_risk else ()))
    yield f"{paint('GPU COST AT RISK', BOLD)}  {at_risk} ({month}) is held by objects that would be denied"
    margin = " " * len("GPU COST AT RISK  ")
    yield f"{margin}${say.money(money.held)}/h held in all, ${say.money(money.idle)}/h idle"
    for each in money.unbounded[: presentation.top or None]:
        worst = f", ${say.money(each.usd_per_hour)}/h at worst" if each.usd_per_hour is not None else ""
        yield plain(f"{margin}without bound: {each.object}: {each.reason}{worst}")
    for waste in money.wasted[: presentation.top or None]:
        price = f", ${say.money(waste.usd_per_hour)}/h" if waste.usd_per_hour is not None else ""
        yield plain(f"{margin}wasted: {waste.object}: {waste.reason} ({say.number(waste.gpus)} GPUs{price})")
    if money.unpriced_gpus:
        yield f"{margin}{say.number(money.unpriced_gpus)} GPUs have no known price and count as nothing"
    yield plain(f"{margin}{money.prices}")


def _worst(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    worst = [audited for audited in report.audited if audited.findings]
    shown = worst[: presentation.top or None]
    if not worst:
        return
    growing = say.growth(report)
    rows = [_row(audited, growing) for audited in shown]
    header = ("WORST OBJECTS", "WOULD", "POLICIES", "GPUS", "$/HOUR", "FIRST FIX")
    yield from aligned(header, rows, presentation.paint, right={3, 4}, colours={0: (BOLD,)})
    if len(worst) > len(shown):
        yield f"and {len(worst) - len(shown):,} more: --top 0"


def _row(audited: Audited, growing: Mapping[str, str]) -> tuple[str, ...]:
    first, *others = say.policies(audited)
    return (
        str(audited.object),
        audited.action.value,
        f"{first} +{len(others)}" if others else first,
        say.gpus_of(audited.held),
        say.price(audited, growing),
        _cut(say.first_fix(audited)),
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_FIX else f"{text[: _MOST_FIX - 3]}..."


def changes(presentation: Presentation) -> Iterator[str]:
    """Yield what changed since an earlier audit."""
    found, paint = presentation.comparison, presentation.paint
    if found is None:
        return
    yield (
        f"{paint('CHANGES', BOLD)} since {found.since:%Y-%m-%d %H:%M %Z}: {paint(f'+{len(found.new):,} new', RED)}  "
        f"{paint(f'-{len(found.fixed):,} fixed', GREEN)}  ={found.unchanged:,} unchanged"
    )
    for sign, each in ("+", found.new), ("-", found.fixed):
        for changed in each[: presentation.top or None]:
            yield plain(f"  {sign} {changed.object}: {changed.finding.policy}: {changed.finding.message}")
        if presentation.top and len(each) > presentation.top:
            yield f"  {sign} and {len(each) - presentation.top:,} more: --top 0"


def gaps(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    """Yield what was not looked at, and exemptions to look at."""
    paint = presentation.paint
    blind = skipped(report)
    if report.not_evaluated or blind or report.coverage < 1:
        yield f"{paint('NOT EVALUATED', BOLD)}  coverage {say.percent(report.coverage)}"
    yield from (f"  {plain(phrase)}" for phrase in say.not_evaluated(report))
    for (policy, reason), count in blind.most_common(presentation.top or None):
        yield plain(f"  {policy}: {reason} ({say.plural(count, 'object')})")
    yield from (plain(f"exemption over: {phrase}") for phrase in report.expired)
    yield from (plain(f"exemption that matches nothing: {phrase}") for phrase in report.unused)
    yield from (plain(remark) for remark in report.remarks)


def _next(report: AuditReport, presentation: Presentation) -> Iterator[str]:
    found = [group.name for group in grouped(report, "policy")]
    explain = f" · gpugate explain {plain(found[0])}" if found else ""
    exempt = " · gpugate audit --write-exemptions exemptions.yaml" if actions(report)[Action.BLOCK] else ""
    yield presentation.paint(f"Next: gpugate audit -o html=audit.html{explain}{exempt}", DIM)
