"""The fleet report as one HTML page, in the design of the audit's.

The page is complete without its script, which sorts tables.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.formats.html.document import asset, contents, document
from gpugate.webhook.audit.formats.html.markup import (
    NOTHING,
    Html,
    bar,
    cell,
    join,
    legend,
    number,
    row,
    spark,
    table,
    tag,
)
from gpugate.webhook.fleet import formats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpugate.webhook.fleet.model import Day, Figures, FleetReport, GpuFigures

MOST_ROWS: Final = 200
"""More rows of a table are in the JSON document only."""
_MOST_REGRESSIONS: Final = 10
_HOURS: Final = 730
_DAY: Final = 86_400
# Columns of sentences keep their words whole on a phone, where the table scrolls.
_WORDS: Final = "#worst td:nth-child(2), #regressions td:nth-child(2), #expired td, #drift td { min-width: 9rem; } "
_STYLE: Final = (
    _WORDS
    + "#silent td, #gpus-by-team td:nth-child(2), #gpus-by-cluster td:nth-child(2), #expired td:nth-child(4) { white-space: nowrap; }"
)
_SECTIONS: Final = {
    "money": "GPU spend",
    "overview": "Objects",
    "trend": "Trend",
    "silent": "Not reporting",
    "worst": "Worst objects",
    "regressions": "Since last week",
    "cluster": "Clusters",
    "region": "Regions",
    "team": "Teams",
    "policy": "Policies",
    "gpus-by-model": "GPU models",
    "gpus-by-team": "GPUs by team",
    "gpus-by-cluster": "GPUs by cluster",
    "drift": "Policy files",
    "expired": "Expired exemptions",
    "notes": "Notes",
}


def render(report: FleetReport) -> str:
    """Write a report."""
    main = join(
        (
            _money(report),
            _tiles(report),
            _trend(report),
            _silent(report),
            _worst(report),
            _regressions(report),
            *(_group(by, rows) for by, rows in formats.groups(report)),
            *(_gpus(by, rows) for by, rows in formats.gpu_groups(report)),
            _drift(report),
            _expired(report),
            _notes(report),
        )
    )
    script = asset("tables.js")
    body = tag(
        "body",
        _header(report),
        contents(main, _SECTIONS),
        tag("main", main),
        tag(
            "footer", f"Written by gpugate {report.gpugate} on {report.engine}. This page loads no external resources."
        ),
        Html(f"<script>{script}</script>"),
    )
    title = f"gpugate report of {say.plural(report.totals.clusters, 'cluster')}, {report.time:%Y-%m-%d}"
    return document(title, body, asset("report.css") + _STYLE, script)


def _header(report: FleetReport) -> Html:
    silent = f"; {say.plural(len(report.silent), 'cluster')} did not report" if report.silent else ""
    return tag(
        "header",
        tag("p", "gpugate fleet report", class_="brand"),
        tag("h1", say.plural(report.totals.clusters, "cluster")),
        tag(
            "p",
            f"{report.time:%Y-%m-%d %H:%M} UTC, last runs of {report.days} days from {', '.join(report.sources)}{silent}",
            class_="intro",
        ),
    )


def _usd(amount: float | None, hours: float = 1.0) -> str:
    return say.UNKNOWN if amount is None else f"${say.money(amount, hours)}"


def _parts(figures: Figures) -> list[tuple[str, str, float]]:
    """Return the parts of the spend: colour, name and amount."""
    lost = [("idle", figures.idle_usd or 0.0), ("parked", figures.parked_usd or 0.0)]
    allocated = (figures.allocated_usd or 0.0) - sum(usd for _, usd in lost)
    parts = [
        ("allocated", "allocated and in use or unknown" if any(usd for _, usd in lost) else "allocated", allocated)
    ]
    parts += [(name, name, usd) for name, usd in lost]
    parts.append(("unallocated", "unallocated", figures.unallocated_usd or 0.0))
    return [part for part in parts if part[2] > 0]


def _money(report: FleetReport) -> Html:
    totals = report.totals
    if totals.spend_usd is None:
        return NOTHING
    parts = _parts(totals)
    summary = ", ".join(f"{name} {_usd(usd)}" for _, name, usd in parts)
    lost = (formats.idle_or_parked(totals) or 0.0) + (totals.unallocated_usd or 0.0)
    return tag(
        "section",
        tag("h2", "GPU spend"),
        tag(
            "div",
            tag("strong", _usd(totals.spend_usd), tag("small", " per hour")),
            tag("span", f"{_usd(totals.spend_usd, _HOURS)} per month of {_HOURS} hours"),
            tag("span", f"{_usd(lost, _HOURS)} per month idle, parked or unallocated; {_usd(totals.at_risk_usd)} per hour at risk"),
            class_="headline",
        ),
        bar([(colour, usd) for colour, _, usd in parts], totals.spend_usd, label=f"GPU cost per hour: {summary}", kind="bar thick"),
        legend((colour, name, f"{_usd(usd)}/h") for colour, name, usd in parts),
        id="money",
    )  # fmt: skip


def _tiles(report: FleetReport) -> Html:
    totals = report.totals
    tiles = (
        ("deny", f"{totals.deny:,}", "would be denied", "objects, if they were created now"),
        ("warn", f"{totals.warn:,}", "would get a warning", "objects"),
        ("record", formats.unbounded(totals), "unbounded", "NodePools and autoscalers without a limit on GPUs"),
        ("deny" if report.silent else "allow", f"{len(report.silent):,}", "did not report", "clusters, in no figure"),
    )
    entries = [
        tag("li", tag("strong", count), tag("b", name), tag("small", meaning), class_=f"tile {colour}")
        for colour, count, name, meaning in tiles
    ]
    return tag("section", tag("h2", "Objects and clusters"), tag("ul", *entries, class_="tiles"), id="overview")


_FIGURES: Final[tuple[tuple[str, str, Callable[[Day], float | None]], ...]] = (
    ("Spend", "allocated", lambda day: day.spend_usd),
    ("Idle or parked", "idle", lambda day: day.idle_or_parked_usd),
    ("At risk", "risk", lambda day: day.at_risk_usd),
    ("Would be denied", "deny", lambda day: float(day.deny)),
    ("Clusters that reported", "allow", lambda day: float(day.clusters)),
)


def _trend(report: FleetReport) -> Html:
    if len(report.daily) < 2:
        return NOTHING
    cards = []
    for name, colour, value in _FIGURES:
        points = [(float(day.day), amount) for day in report.daily if (amount := value(day)) is not None]
        if not points:
            continue
        is_usd = colour in {"allocated", "idle", "risk"}
        first, last = (f"{'$' if is_usd else ''}{amount:,.0f}" for amount in (points[0][1], points[-1][1]))
        day = formats.when(int(points[0][0]) * _DAY)[:10]
        label = f"{name}: {first} on {day}, {last} on {formats.when(int(points[-1][0]) * _DAY)[:10]}"
        cards.append(
            tag(
                "li",
                tag("b", name),
                spark(points, label=label, kind=colour),
                tag("strong", last),
                tag("small", f"{first} on {day}"),
            )
        )
    intro = "The last run of each cluster on each day; amounts are per hour. A day on which fewer clusters reported has lower sums."
    return tag(
        "section", tag("h2", "Trend"), tag("p", intro, class_="intro"), tag("ul", *cards, class_="trend"), id="trend"
    )


def _section(
    name: str,
    intro: str,
    header: Sequence[str],
    rows: Sequence[Html],
    numbers: Iterable[int] = (),
    key: Html = NOTHING,
) -> Html:
    """Return a section with a table of at most `MOST_ROWS` rows; nothing without rows."""
    if not rows:
        return NOTHING
    listed = table(_SECTIONS[name], header, rows[:MOST_ROWS], numbers=numbers)
    more = (
        tag("p", f"And {len(rows) - MOST_ROWS:,} more in the JSON document.", class_="intro")
        if len(rows) > MOST_ROWS
        else NOTHING
    )
    return tag("section", tag("h2", _SECTIONS[name]), tag("p", intro, class_="intro"), key, listed, more, id=name)


def _amount(usd: float | None) -> Html:
    return number(say.UNKNOWN if usd is None else f"{usd:,.2f}", usd or 0.0)


def _count(count: float) -> Html:
    return number(f"{count:,.0f}", count)


_INTROS: Final = {
    "cluster": "Each by its last run. Highest spend first.",
    "region": "The clusters of each region.",
    "team": "Allocated GPUs by the team of their Pods, over all clusters.",
    "policy": "Objects with a finding of each policy, and their allocated GPUs. An object with findings of several policies is in each of them.",
}


def _group(by: str, rows: Sequence[tuple[str, Figures]]) -> Html:
    most = max((figures.spend_usd or 0.0 for _, figures in rows), default=0.0)
    cells = [
        row(
            cell(name or formats.NO_NAME.get(by, "")),
            cell(bar([(colour, usd) for colour, _, usd in _parts(figures)], most)),
            *map(
                _amount,
                (figures.spend_usd, figures.allocated_usd, formats.idle_or_parked(figures), figures.at_risk_usd),
            ),
            number(formats.unbounded(figures), float(figures.unbounded or 0)),
            _count(figures.deny),
            _count(figures.warn),
        )
        for name, figures in rows
    ]
    header = (
        by.capitalize(),
        "Parts",
        "Spend $ / hour",
        "Allocated",
        "Idle or parked",
        "At risk",
        "Unbounded",
        "Denied",
        "Warned",
    )
    return _section(by, _INTROS[by], header, cells, (2, 3, 4, 5, 6, 7, 8))


_GPU_INTROS: Final = {
    "model": "Allocated GPUs by what they did in the window of the metrics. The use of GPUs without metrics is unknown.",
    "team": "Allocated GPUs by the team of their Pods, over all clusters. Highest cost of idle and parked GPUs first.",
    "cluster": "Allocated GPUs by cluster. Highest cost of idle and parked GPUs first.",
}


def _gpus(by: str, rows: Sequence[tuple[str, GpuFigures]]) -> Html:
    most = max((figures.allocated for _, figures in rows), default=0.0)
    cells = []
    for name, figures in rows:
        model = cell(figures.model or formats.NO_NAME["model"])
        names = [model] if by == "model" else [cell(name or formats.NO_NAME.get(by, "")), model]
        uses = [(use.replace("_", "-"), getattr(figures, use)) for use in formats.USES]
        numbers = [figures.allocated, *(gpus for _, gpus in uses)]
        cells.append(
            row(
                *names,
                cell(bar(uses, most)),
                *(number(formats.gpus(gpus), gpus) for gpus in numbers),
                _amount(figures.usd),
                _amount(formats.idle_or_parked(figures)),
            )
        )
    named = ["Model"] if by == "model" else [by.capitalize(), "Model"]
    # The last two have the same colour.
    keys = [(use.replace("_", "-"), use.replace("_", "-"), "") for use in formats.USES[:4]]
    key = legend([*keys, ("unknown", "doubtful or unknown", "")])
    header = [
        *named,
        "Use",
        "Allocated",
        *(use.replace("_", "-").capitalize() for use in formats.USES),
        "$ / hour",
        "Idle or parked $",
    ]
    return _section(f"gpus-by-{by}", _GPU_INTROS[by], header, cells, range(len(named) + 1, len(header)), key)


def _worst(report: FleetReport) -> Html:
    rows = [
        row(
            cell(formats.object_name(entry), tag("small", f"{entry.cluster}{f', {entry.team}' if entry.team else ''}")),
            cell(_reason(entry)),
            number(f"{entry.gpus:g}", entry.gpus),
            _amount(entry.loss_usd),
            _amount(entry.loss_usd * _HOURS),
        )
        for entry in report.worst
    ]
    intro = "By the higher of two costs: that of its idle and parked GPUs, and, if it would be denied, that of all its GPUs."
    return _section("worst", intro, ("Object", "Why", "GPUs", "$ / hour", "$ / month"), rows, (2, 3, 4))


def _reason(entry: Any) -> str:  # Any: a worst object
    reasons = [f"idle or parked ${entry.idle_or_parked_usd:,.2f}/h"] if entry.idle_or_parked_usd else []
    reasons += [f"would be denied by {entry.policy or 'a policy'}"] if entry.action == "deny" else []
    return "; ".join(reasons)


def _regressions(report: FleetReport) -> Html:
    policies = [
        row(
            cell(entry.policy, tag("small", f"in {say.plural(entry.clusters, 'cluster')}")),
            cell("objects with findings"),
            _count(entry.before),
            _count(entry.now),
        )
        for entry in report.policy_regressions
    ]
    by_figure: defaultdict[str, list[Html]] = defaultdict(list)
    for entry in report.regressions:
        caveat = [tag("small", entry.caveat)] if entry.caveat else []
        amounts = map(number, formats.amount_of(entry))
        by_figure[entry.figure].append(row(cell(entry.cluster, *caveat), cell(entry.figure), *amounts))
    groups = [policies, *by_figure.values()]
    rows = [entry for group in groups for entry in group[:_MOST_REGRESSIONS]]
    intro = "What got worse in a cluster since its last run that is at least a week older than the counted one."
    more = sum(map(len, groups)) - len(rows)
    intro += f" The {_MOST_REGRESSIONS} largest of each figure; {more:,} more are in the JSON document." if more else ""
    return _section("regressions", intro, ("Cluster or policy", "Figure", "Then", "Now"), rows, (2, 3))


def _silent(report: FleetReport) -> Html:
    rows = [
        row(cell(entry.cluster), cell(entry.region), cell(formats.when(entry.at)), _amount(entry.spend_usd))
        for entry in report.silent
    ]
    intro = "Clusters whose last run is too old. No sum contains them."
    return _section("silent", intro, ("Cluster", "Region", "Last run", "Spend then $ / hour"), rows, (3,))


def _drift(report: FleetReport) -> Html:
    rows = [
        row(cell(tag("code", entry.policy_hash)), cell(entry.gpugate), cell(entry.policy_mode), _count(entry.clusters), cell(_members(report, entry)))
        for entry in report.versions
    ]  # fmt: skip
    intro = (
        "Clusters by the policy file, the version of gpugate and the mode of their last run; the most frequent first."
    )
    return _section("drift", intro, ("Hash of the policy file", "gpugate", "Mode", "Clusters", "Names"), rows, (3,))


_MOST_NAMES: Final = 5


def _members(report: FleetReport, version: Any) -> str:  # Any: a version of the policies
    key = (version.policy_hash, version.gpugate, version.policy_mode)
    names = sorted(
        entry.cluster for entry in report.clusters if (entry.policy_hash, entry.gpugate, entry.policy_mode) == key
    )
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _expired(report: FleetReport) -> Html:
    rows = [
        row(cell(entry.policies, tag("small", entry.reason)), cell(entry.namespaces), cell(entry.owner), cell(str(entry.expires)), _count(entry.clusters))
        for entry in report.expired
    ]  # fmt: skip
    intro = "Exemptions that no longer apply: renew them with a reason, or delete them from the policy file."
    return _section("expired", intro, ("Policies", "Namespaces", "Owner", "Expired", "Clusters"), rows, (4,))


def _notes(report: FleetReport) -> Html:
    sentences = formats.notes(report)
    if not sentences:
        return NOTHING
    entries = tag("ul", *(tag("li", sentence) for sentence in sentences), class_="plain")
    return tag(
        "section",
        tag("h2", "Notes"),
        tag("p", "What the figures leave out, and why.", class_="intro"),
        entries,
        id="notes",
    )
