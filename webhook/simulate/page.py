"""A simulation as one HTML file, in the design of the audit's page; it needs no script and loads no external resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.formats.html import markup
from gpugate.webhook.audit.formats.html.document import asset, contents, document
from gpugate.webhook.audit.formats.html.markup import MARKS, NOTHING, Html, bar, join, tag
from gpugate.webhook.simulate import phrases

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpugate.webhook.simulate.model import Change, PolicyChange, PolicyTotals, Simulation

_MOST_OWNERS: Final = 1_000
_MOST_ROWS: Final = 200
_SECTIONS: Final = {
    "overview": "Owners",
    "denied": "Newly denied",
    "others": "Other changes",
    "policies": "Policies",
    "nodes": "Nodes",
    "runs": "Scheduled runs",
    "scale-ups": "Scale-ups",
    "exemptions": "Exemptions",
    "gaps": "Not evaluated",
    "method": "Method",
}
_METHOD: Final = (
    "The recorded requests and the stored objects were evaluated by both policy files, with the engine of the webhook and the cluster "
    "data that was read. Nothing was changed. An owner is a workload with its Pods, or an object without an owner. It is newly denied "
    "if only the candidate denies one of its objects. Running Pods are not affected; their owners could not create them again."
)


def render(simulation: Simulation) -> str:
    """Write a simulation."""
    denied = [change for change in simulation.changes if change.newly_denied]
    others = [change for change in simulation.changes if not change.newly_denied]
    main = join(
        (
            _overview(simulation),
            _owners("denied", "Newly denied", denied),
            _owners("others", "Other changes", others),
            _policies(simulation.policies),
            _nodes(simulation),
            _runs(simulation),
            _scale_ups(simulation),
            _exemptions(simulation),
            _gaps(simulation),
            _method(simulation),
        )
    )
    body = tag(
        "body",
        tag("a", "Skip to the owners", class_="skip", href="#denied" if denied else "#overview"),
        _header(simulation),
        contents(main, _SECTIONS),
        tag("main", main),
        tag("footer", f"Written by gpugate {simulation.gpugate}. This page loads no external resources."),
    )
    return document(f"gpugate simulate: {simulation.candidate}", body, asset("report.css"))


def _header(simulation: Simulation) -> Html:
    details = [
        ("Current policy file", simulation.current),
        ("Candidate", simulation.candidate),
        ("Sources", ", ".join(simulation.sources)),
        *(("Coverage", text) for text in phrases.basis(simulation.coverage)),
    ]
    entries = [tag("div", tag("dt", name), tag("dd", text)) for name, text in details if text]
    return tag(
        "header",
        tag("p", "gpugate simulate", class_="brand"),
        tag("h1", simulation.candidate),
        tag("p", f"{phrases.headline(simulation)}.", class_="intro"),
        tag("details", tag("summary", "Details of this simulation"), tag("dl", *entries, class_="facts"), class_="run"),
    )


def _overview(simulation: Simulation) -> Html:
    allowed, denied = {change.object for change in simulation.newly_allowed}, simulation.denied
    changed = {change.object for change in simulation.changes}
    others = len(changed - allowed - {change.object for change in simulation.newly_denied})
    gpus = phrases.amount(denied.gpus, denied.usd_per_hour) if denied.gpus else "no allocated GPUs are known"
    tiles = (
        ("deny", "✕", denied.owners, "newly denied", gpus),
        ("allow", "✓", len(allowed), "no longer denied", "only the current policy file denies them"),
        ("warn", "!", others, "other changes", "a warning, a patch or a record more or less"),
    )
    items = [
        tag(
            "li",
            tag("span", sign, class_="sign", aria_hidden="true"),
            tag("strong", f"{count:,}"),
            tag("b", title),
            tag("small", text),
            class_=f"tile {name}",
        )
        for name, sign, count, title, text in tiles
    ]
    sent = phrases.requests(simulation)
    confidence = simulation.confidence
    return tag(
        "section",
        tag("h2", "If the candidate were in force"),
        tag("ul", *items, class_="tiles"),
        tag("p", f"The newly denied owners sent {sent}.", class_="intro") if sent else NOTHING,
        tag("h3", f"Confidence: {confidence.level}"),
        _list(confidence.reasons)
        if confidence.reasons
        else tag("p", "Nothing is known to be missing.", class_="intro"),
        id="overview",
    )


def _owners(name: str, title: str, changes: Sequence[Change]) -> Html:
    if not changes:
        return NOTHING
    listed = changes[:_MOST_OWNERS]
    columns = tag("div", tag("span", "Owner"), tag("span", "Requests, GPUs"), tag("span", "$ / hour"), class_="cols")
    more = f"And {len(changes) - len(listed):,} more in the JSON document."
    return tag(
        "section",
        tag("h2", title),
        columns,
        tag("div", *map(_owner, listed), class_="list"),
        tag("p", more, class_="intro") if len(changes) > len(listed) else NOTHING,
        id=name,
    )


def _owner(change: Change) -> Html:
    amounts = [
        *([say.plural(change.requests.total, "request")] if change.requests.total else []),
        *([phrases.amount(change.gpus, None)] if change.gpus else []),
    ]
    first = next((policy for policy in change.policies if policy.newly_denied), change.policies[0])
    summary = tag(
        "summary",
        tag("b", str(change.object)),
        tag("i", ", ".join(amounts)),
        tag("i", say.money(change.usd_per_hour) if change.usd_per_hour is not None else ""),
        tag("em", f"{phrases.transition(change)}: {first.message}"),
    )
    findings = tag("ul", *map(_policy_change, change.policies))
    counted = [tag("li", tag("p", text)) for text in phrases.details(change)]
    return tag("details", summary, findings, tag("ul", *counted), class_=MARKS[change.candidate])


def _policy_change(policy: PolicyChange) -> Html:
    return tag(
        "li",
        tag("a", policy.policy or "malformed", href="#policies"),
        tag("code", f"{policy.current} -> {policy.candidate}"),
        tag("p", policy.message),
        tag("p", policy.hint, class_="hint") if policy.hint else NOTHING,
        class_=MARKS[policy.candidate],
    )


def _policies(policies: Sequence[PolicyTotals]) -> Html:
    if not policies:
        return NOTHING
    most = max(policy.denied.owners + policy.allowed + policy.others for policy in policies)
    rows = [
        markup.row(
            markup.cell(tag("code", policy.policy or "malformed")),
            *(markup.number(f"{count:,}") for count in (policy.denied.owners, policy.allowed, policy.others)),
            markup.cell(
                bar([("deny", policy.denied.owners), ("allow", policy.allowed), ("warn", policy.others)], most)
            ),
            markup.number(f"{policy.denied.people:,}"),
            markup.number(f"{policy.denied.controllers:,}"),
            markup.number(say.number(policy.denied.gpus)),
            markup.number(say.money(policy.denied.usd_per_hour)),
        )
        for policy in policies
    ]
    header = (
        "Policy",
        "Newly denied",
        "No longer denied",
        "Other changes",
        "Owners",
        "Requests of people",
        "of controllers",
        "GPUs",
        "$ / hour",
    )
    body = markup.table("Owners by policy, most new denials first", header, rows, numbers=(1, 2, 3, 5, 6, 7, 8))
    return tag("section", tag("h2", "Policies"), body, id="policies")


def _nodes(simulation: Simulation) -> Html:
    if not simulation.nodes:
        return NOTHING
    pools = [
        markup.row(
            markup.cell(risk.node_pool or "(no pool)"),
            markup.number(f"{risk.nodes:,}"),
            markup.number(f"{risk.pods:,}"),
            markup.number(say.number(risk.gpus)),
            markup.number(say.money(risk.usd_per_hour)),
            markup.cell(_sentence(phrases.window(risk.window, simulation)) if risk.window else "unknown"),
        )
        for risk in simulation.pools
    ]
    nodes = [
        markup.row(
            markup.cell(risk.node),
            markup.cell(risk.node_pool or "(no pool)"),
            markup.number(f"{risk.pods:,}"),
            markup.number(say.number(risk.gpus)),
            markup.number(say.money(risk.usd_per_hour)),
            markup.cell(phrases.names(risk.owners)),
        )
        for risk in simulation.nodes[:_MOST_ROWS]
    ]
    intro = f"Their owners are newly denied. {_sentence(phrases.UNPLANNED)}."
    return tag(
        "section",
        tag("h2", phrases.LOST),
        tag("p", intro, class_="intro"),
        markup.table(
            "By NodePool",
            ("NodePool", "Nodes", "Pods", "GPUs", "$ / hour", "Next disruption window"),
            pools,
            numbers=(1, 2, 3, 4),
        ),
        markup.table("By node", ("Node", "NodePool", "Pods", "GPUs", "$ / hour", "Owners"), nodes, numbers=(2, 3, 4)),
        _more(simulation.nodes),
        id="nodes",
    )


def _runs(simulation: Simulation) -> Html:
    if not simulation.runs:
        return NOTHING
    rows = [
        markup.row(
            markup.cell(str(entry.object)),
            markup.cell(phrases.runs_when(entry)),
            markup.number(say.number(entry.gpus) if entry.gpus is not None else say.UNKNOWN),
        )
        for entry in simulation.runs[:_MOST_ROWS]
    ]
    body = markup.table("Scheduled runs, soonest first", ("Owner", "Runs", "GPUs of a run"), rows, numbers=(2,))
    return tag("section", tag("h2", phrases.runs_title(simulation)), body, _more(simulation.runs), id="runs")


def _scale_ups(simulation: Simulation) -> Html:
    if not simulation.scale_ups:
        return NOTHING
    rows = [
        markup.row(
            markup.cell(str(entry.object)),
            markup.cell(str(entry.scaler)),
            markup.number(f"{entry.pods:,}"),
            markup.number("no maximum" if entry.most_pods is None else f"{entry.most_pods:,}"),
            markup.number(say.UNKNOWN if entry.most_gpus is None else say.number(entry.most_gpus)),
        )
        for entry in simulation.scale_ups[:_MOST_ROWS]
    ]
    header = ("Owner", "Autoscaler", "Pods now", "Pods at most", "GPUs at most")
    body = markup.table("Scale-ups, most GPUs first", header, rows, numbers=(2, 3, 4))
    return tag("section", tag("h2", phrases.SCALE_UPS), body, _more(simulation.scale_ups), id="scale-ups")


def _exemptions(simulation: Simulation) -> Html:
    if not simulation.exemptions:
        return NOTHING
    rows = [
        markup.row(
            markup.cell(
                ", ".join(entry.names), tag("small", f"{', '.join(entry.kinds)} {', '.join(entry.namespaces)}")
            ),
            markup.cell(", ".join(entry.policies)),
            markup.cell(entry.owner or "none yet"),
            markup.cell(entry.expires),
        )
        for entry in simulation.exemptions[:_MOST_ROWS]
    ]
    intro = "With these, the candidate denies none of them. Use --write-exemptions and --exemption-owner to write them to a file."
    body = markup.table("Proposed exemptions", ("Objects", "Policies", "Owner", "End"), rows)
    heading = tag("h2", phrases.EXEMPTIONS), tag("p", intro, class_="intro")
    return tag("section", *heading, body, _more(simulation.exemptions), id="exemptions")


def _gaps(simulation: Simulation) -> Html:
    coverage = simulation.coverage
    rows = [
        *((reason, f"{count:,}") for reason, count in coverage.not_evaluated.items()),
        *((f"{gap.what}: {gap.reason}", "" if gap.objects is None else f"{gap.objects:,}") for gap in simulation.gaps),
    ]
    missing = list(phrases.unseen(coverage))
    if not (rows or missing or simulation.remarks):
        return NOTHING
    cells = [markup.row(markup.cell(text), markup.number(count)) for text, count in rows]
    return tag(
        "section",
        tag("h2", "Not evaluated"),
        markup.table("Not evaluated", ("What", "Requests or objects"), cells, numbers=(1,)) if rows else NOTHING,
        *([tag("h3", "Not in the recorded time"), _list(missing)] if missing else []),
        *([tag("h3", "Notes"), _list(simulation.remarks)] if simulation.remarks else []),
        id="gaps",
    )


def _method(simulation: Simulation) -> Html:
    terms = {
        "current": simulation.current,
        "candidate": simulation.candidate,
        "GPUs": "Those that are allocated to the Pods of an owner now; their cost is that of the audit.",
        "scheduled runs": "Starts of CronJobs and other schedules, in UTC unless the object names a time zone.",
        "disruption window": "The time in which the budgets of a NodePool allow Karpenter to replace a drifted or underutilized node.",
    }
    entries = [join((tag("dt", name), tag("dd", meaning))) for name, meaning in terms.items()]
    return tag("section", tag("h2", "Method"), tag("p", _METHOD), tag("dl", *entries, class_="terms"), id="method")


def _list(texts: Iterable[str]) -> Html:
    return tag("ul", *(tag("li", text) for text in texts), class_="plain")


def _more(entries: Sequence[object]) -> Html:
    further = len(entries) - _MOST_ROWS
    return tag("p", f"And {further:,} more in the JSON document.", class_="intro") if further > 0 else NOTHING


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
