"""The objects in which something was found, worst first, each with its findings and how to mend them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from gpugate.webhook.report import audit_words as say
from gpugate.webhook.report.audit_html.advice import advice
from gpugate.webhook.report.audit_html.alike import Likeness, alike
from gpugate.webhook.report.audit_html.breakdown import MOST_NAMESPACES
from gpugate.webhook.report.audit_html.filters import filters
from gpugate.webhook.report.audit_html.looks import MARKS
from gpugate.webhook.report.audit_html.markup import NOTHING, Html, join, last_paragraphs, tag
from gpugate.webhook.report.audit_tally import code, usd
from gpugate.webhook.report.audited import Action

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.webhook.report.audit_html.shared import Shared
    from gpugate.webhook.report.audited import Audited, AuditReport, Finding

_ORDER: Final = list(Action)
_COLUMNS: Final = (("name", "Object"), ("gpus", "GPUs held"), ("usd", "$ / hour"))
_OTHERS: Final = "None of these stops anything: they pass as they are, with a warning, or with what admission adds."


def findings(report: AuditReport, shared: Shared, anchors: Mapping[str, str]) -> Html:
    """Return the filters and both lists; `anchors` are those of the policies."""
    worst = [audited for audited in report.audited if audited.action is Action.BLOCK]
    others = [audited for audited in report.audited if audited.findings and audited.action is not Action.BLOCK]
    namespaces = {audited.object.namespace for audited in (*worst, *others)}
    likeness = Likeness(
        messages=not shared.is_long, namespaces=not shared.is_long or len(namespaces) <= MOST_NAMESPACES
    )
    writer = _Writer(shared, anchors, say.growth(report), likeness)
    lists = (
        writer.section("today", "If you enforce today", _intro(len(worst)), worst),
        writer.section("others", "What else was found", _OTHERS, others) if others else NOTHING,
    )
    return tag("div", filters([*worst, *others]), *lists, id="findings")


def _intro(count: int) -> str:
    if not count:
        return "Nothing that exists would be denied."
    return (
        f"{say.plural(count, 'object')} would be denied when they or their Pods are next created. "
        "What runs now is not touched."
    )


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes objects; `growing` is what has no bound, with its worst case; objects of a `likeness` are one entry."""

    shared: Shared
    anchors: Mapping[str, str]
    growing: Mapping[str, str]
    likeness: Likeness

    def section(self, name: str, title: str, intro: str, objects: Sequence[Audited]) -> Html:
        parts = [
            tag("h2", title, " ", tag("span", f"{len(objects):,}", class_="count")),
            tag("p", intro, class_="intro"),
        ]
        if objects:
            columns = (tag("span", text, data_sort=key) for key, text in _COLUMNS)
            parts.append(tag("div", *columns, class_="cols"))
            entries = sorted(alike(objects, self.likeness), key=self._rank)
            parts.append(tag("div", *map(self._entry, entries), class_="list b"))
        return tag("section", *parts, id=name)

    def _rank(self, objects: Sequence[Audited]) -> tuple[int, float]:
        """Sort as objects are, the worst first and then by money, here that of all that are alike."""
        first = objects[0]
        unbounded = str(first.object) in self.growing
        cost = inf if unbounded else usd(each for audited in objects for each in audited.held) or 0.0
        return _ORDER.index(first.action), -cost

    def _entry(self, objects: Sequence[Audited]) -> Html:
        """Write objects in which the same was found; what the list says of itself is not said again."""
        first = objects[0]
        held = [each for audited in objects for each in audited.held]
        cost, unbounded = usd(held), say.price(first, self.growing)
        worst = say.worst_finding(first)
        order = sorted(range(len(first.findings)), key=lambda index: first.findings[index] is not worst)
        said = [[audited.findings[index].message for index in order] for audited in objects]
        differ = said.count(said[0]) < len(said)
        more = f" (+{len(order) - 1:,})" if len(order) > 1 else ""
        price = f"${say.money(cost)}" if cost is not None else unbounded if unbounded != say.UNKNOWN else ""
        figures = (tag("i", say.gpus_of(held) if held else ""), tag("i", price)) if held or price else ()
        pods = say.plural(first.pods, "Pod") if first.pods > 1 else ""
        beside = f"and {len(objects) - 1:,} alike" if objects[1:] else pods
        names = tag("b", str(first.object), tag("u", beside) if beside else NOTHING)
        return tag(
            "details",
            tag("summary", names, *figures, tag("em", worst.message if worst else "", more)),
            tag("ul", *(self._finding(first.findings[i], first, said=differ or not n) for n, i in enumerate(order))),
            _members(objects, said if differ else (), self.shared.kind(first.object.kind)) if objects[1:] else NOTHING,
            class_=MARKS[first.action] if first.action is not Action.BLOCK else None,
        )

    def _finding(self, finding: Finding, audited: Audited, *, said: bool) -> Html:
        policy = code(finding)
        # The first message is that of the summary; where objects alike have their own, each stands with its object.
        message = NOTHING if said else tag("p", finding.message)
        rest = _place(finding) + advice(finding)
        mark = MARKS[finding.action] if finding.action is not audited.action else None
        whole = self.shared(Html(message + rest), policy)
        if whole:
            return tag("li", tag("a", href=whole), class_=mark)
        part = self.shared(Html(rest), policy) if message else ""
        if part:
            return tag("li", tag("a", href=part), message, class_=mark)
        return tag("li", tag("a", policy, href=f"#{self.anchors[policy]}"), message, Html(rest), class_=mark)


def _place(finding: Finding) -> Html:
    template = f" (Pods of this {finding.template_of})" if finding.template_of else ""
    path = tag("code", finding.place, template) if finding.place else NOTHING
    return join((path, tag("p", finding.note, class_="note") if finding.note else NOTHING))


def _members(objects: Sequence[Audited], said: Sequence[Sequence[str]], kind: str) -> Html:
    """All objects, and of each what was said in it where that differs, in the order of the findings above.

    A `kind` is said of the list, and shown before each by the style sheet.
    """
    return tag(
        "ol",
        *(
            tag(
                "li",
                str(audited.object).removeprefix(f"{kind}/"),
                f", {say.gpus_of(audited.held)}" if audited.held else "",
                last_paragraphs(said[index] if said else ()),
            )
            for index, audited in enumerate(objects)
        ),
        data_kind=kind or None,
    )
