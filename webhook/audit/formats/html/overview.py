"""The top of the page: the audited cluster, the tiles, and the cost of GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit import trend as history
from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.formats.html.markup import CLASSES, NOTHING, VERBS, Html, bar, legend, spark, tag
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.tally import actions, suppressed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport, Cost
    from gpugate.webhook.audit.trend import Figure, Trend
    from gpugate.webhook.audit.words import Amounts

_SIGNS: Final = {Action.DENY: "✕", Action.MUTATE: "±", Action.WARN: "!", Action.ALLOW: "✓"}
_TILES: Final = {
    Action.DENY: ("would be denied", "creating the object or its Pods would fail"),
    Action.MUTATE: ("would be mutated", "the webhook would patch the object"),
    Action.WARN: ("would get a warning", "the object would be allowed"),
    Action.ALLOW: ("no findings", "the object would be allowed"),
}


def header(report: AuditReport) -> Html:
    """Return the title and the details of the run."""
    cluster = report.cluster
    price = report.cost.prices if report.cost else ""
    first = f"Audited {report.time:%Y-%m-%d %H:%M %Z}, coverage {say.percent(report.coverage)}"
    details = [
        *say.configured(cluster).items(),
        ("UID of the cluster", cluster.uid),
        ("Run", report.run_id),
        ("Kubernetes", cluster.version),
        ("User", cluster.user),
        ("Policy file", report.generation),
        ("Target versions", report.target),
        ("Prices", price),
        ("Objects", ", ".join(f"{count:,} {kind}" for kind, count in report.counts.items())),
        ("Names", "replaced by pseudonyms" if report.anonymized else ""),
    ]
    entries = [tag("div", tag("dt", name), tag("dd", text)) for name, text in details if text]
    return tag(
        "header",
        tag("p", "gpugate audit", class_="brand"),
        tag("h1", cluster.name),
        tag("p", first, class_="intro"),
        # Closed, so that a phone shows the figures on its first screen.
        tag("details", tag("summary", "Details of this audit"), tag("dl", *entries, class_="facts"), class_="run"),
    )


def tiles(report: AuditReport) -> Html:
    """Return the number of objects by action, as tiles and as a bar."""
    counts = actions(report)
    whole = sum(counts.values())
    entries = [
        tag(
            "li",
            tag("span", sign, class_="sign", aria_hidden="true"),
            tag("strong", f"{counts[action]:,}"),
            tag("b", _TILES[action][0]),
            tag("small", _TILES[action][1]),
            class_=f"tile {CLASSES[action]}",
        )
        for action, sign in _SIGNS.items()
    ]
    summary = ", ".join(f"{counts[action]:,} {VERBS[action]}" for action in Action)
    exempt = sum(1 for _ in suppressed(report))
    notes = (
        [f"{say.plural(counts[Action.RECORD], 'more object')} would only be recorded."] if counts[Action.RECORD] else []
    )
    notes += [f"{say.plural(exempt, 'finding')} with an exemption."] if exempt else []
    return tag(
        "section",
        tag("h2", "If these objects were created now"),
        tag("ul", *entries, class_="tiles"),
        bar([(CLASSES[action], counts[action]) for action in Action], whole, label=f"Of {whole:,} objects: {summary}"),
        tag("p", " ".join(notes), class_="intro") if notes else NOTHING,
        id="overview",
    )


_WASTE: Final = ("idle", "parked", say.UNALLOCATED)


def money(report: AuditReport, presentation: Presentation) -> Html:
    """Return the cost of GPUs: the spend and its parts, and what is at risk."""
    cost = report.cost
    if cost is None:
        return NOTHING
    hours, amount = presentation.hours_per_month, presentation.amount
    figures = [(name.replace(" ", "-"), name, usd) for name, usd in say.spend(cost)]
    summary = ", ".join(f"{name} {amount(usd)}" for _, name, usd in figures)
    idle = sum(usd for name, usd in say.spend(cost) if name in _WASTE)
    wasted = f"{amount(idle, hours)} per month idle, parked or unallocated; " if cost.used else ""
    budget, usage = say.budget(cost, presentation.idle_budget, amount), report.usage
    known = (
        f"Use in {usage.window_seconds / 3600:g} h known for {say.percent(usage.coverage)} of the allocated GPUs, from {usage.source}. "
        if usage
        else "Without --prometheus, the use of allocated GPUs is unknown. "
    )
    return tag(
        "section",
        tag("h2", "GPU spend"),
        tag(
            "div",
            tag("strong", f"{amount(cost.spend)}", tag("small", " per hour")),
            tag("span", f"{amount(cost.spend, hours)} per month of {hours:g} hours"),
            tag("span", f"{wasted}{amount(cost.at_risk)} per hour at risk"),
            class_="headline",
        ),
        tag(
            "p",
            f"{budget[:1].upper()}{budget[1:]}.",
            class_="over" if say.is_over(cost, presentation.idle_budget) else "intro",
        )
        if budget
        else NOTHING,
        bar(
            [(name, usd) for name, _, usd in figures],
            cost.spend,
            label=f"GPU cost per hour: {summary}",
            kind="bar thick",
        ),
        legend((name, text, f"{amount(usd)}/h") for name, text, usd in figures),
        tag(
            "p",
            f"{known}Prices: {'; '.join(filter(None, (cost.prices, amount.rate)))}. See ",
            tag("a", "the definitions", href="#method"),
            ".",
            class_="intro",
        ),
        id="money",
    )


_MOST_MOVED: Final = 30
_COLOURS: Final = {
    "would be denied": "deny",
    "would be mutated": "mutate",
    "would get a warning": "warn",
    "at risk": "risk",
}


def trend(moving: Trend | None, amount: Amounts) -> Html:
    """Return each figure with a sparkline over earlier audits, and what is new, gone or changed."""
    if moving is None:
        return NOTHING
    cards = [
        tag(
            "li",
            tag("b", figure.name[:1].upper() + figure.name[1:]),
            spark(
                [(point.time.timestamp(), point.value) for point in figure.points],
                label=f"{figure.name}: {history.value(figure.points[0].value, figure.unit, amount)} on "
                f"{figure.points[0].time:%Y-%m-%d}, {history.value(figure.now, figure.unit, amount)} now",
                kind=_COLOURS.get(figure.name, figure.name.replace(" ", "-")),
            ),
            tag("strong", f"{history.value(figure.now, figure.unit, amount)}{'/h' if figure.unit == 'usd' else ''}"),
            tag("small", _since(figure, amount)),
        )
        for figure in moving.figures
    ]
    intro = (
        f"{say.plural(len(moving.earlier), 'earlier audit')} since {moving.earlier[0].time:%Y-%m-%d}. "
        f"Changes are since {moving.base.time:%Y-%m-%d %H:%M %Z}. Each line begins at 0."
    )
    moved = moving.moved
    listed = [tag("li", history.moved_text(entry, amount)) for entry in moved[:_MOST_MOVED]]
    more = tag("p", f"And {len(moved) - _MOST_MOVED:,} more.", class_="intro") if len(moved) > _MOST_MOVED else NOTHING
    return tag(
        "section",
        tag("h2", "Trend"),
        tag("p", intro, class_="intro"),
        *(tag("p", f"Note: {caveat}.", class_="intro") for caveat in moving.caveats),
        tag("ul", *cards, class_="trend"),
        tag("h3", "New, gone and changed") if listed else NOTHING,
        tag("ul", *listed, class_="plain") if listed else NOTHING,
        more,
        id="trend",
    )


def _since(figure: Figure, amount: Amounts) -> str:
    base, last = history.change(figure, figure.base, amount), history.change(figure, figure.last, amount)
    parts = [
        "unchanged" if base == "=" else base or "new",
        f"{last} since the last audit" if last not in {"", "="} else "",
    ]
    return ", ".join(filter(None, parts))


def warnings(report: AuditReport, amount: Amounts) -> Html:
    """Return the unbounded, wasted and unpriced GPUs."""
    entries = [*_warnings(report.cost, amount)] if report.cost else []
    if not entries:
        return NOTHING
    return tag("section", tag("h2", "Unbounded and wasted GPUs"), tag("ul", *entries, class_="cards"), id="unbounded")


def _warnings(cost: Cost, amount: Amounts) -> Iterator[Html]:
    for unbounded in cost.unbounded:
        price = (
            f"at most {amount(unbounded.usd_per_hour)}/h" if unbounded.usd_per_hour is not None else "no upper limit"
        )
        yield tag("li", tag("b", str(unbounded.object)), tag("em", price), tag("p", "Unbounded: ", unbounded.reason))
    for waste in cost.wasted:
        price = f", {amount(waste.usd_per_hour)}/h" if waste.usd_per_hour is not None else ""
        gpus = f"{say.number(waste.gpus)} GPUs{price}"
        yield tag("li", tag("b", str(waste.object)), tag("em", gpus), tag("p", "Wasted: ", waste.reason))
    if cost.unpriced_gpus:
        gpus = f"{say.number(cost.unpriced_gpus)} GPUs"
        yield tag("li", tag("b", gpus), tag("em", "no price"), tag("p", "No total above includes them."))
