"""The findings section of the HTML report: objects by severity, each with its findings and fixes.

A report of ten thousand findings mostly repeats a few hundred. Such reports contain each text once, and findings link to
it. The links have no text: the style sheet adds the name of the policy, which a browser shows without a script too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Patches, Replacement
from gpugate.webhook.report import audit_words as say
from gpugate.webhook.report import yaml_text
from gpugate.webhook.report.audit_html.breakdown import MOST_NAMESPACES
from gpugate.webhook.report.audit_html.markup import MARKS, NOTHING, VERBS, Html, escape, join, last_paragraphs, tag
from gpugate.webhook.report.audit_tally import code, usd
from gpugate.webhook.report.audited import Action
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.findings import Patch
    from gpugate.webhook.report.audited import Audited, AuditReport, Finding


class Mark(Enum):
    """What becomes of a line."""

    CONTEXT = " "
    ADDED = "+"
    REMOVED = "-"


Line = tuple[Mark, str]


def patch_lines(patches: Iterable[Patch]) -> Iterator[Line]:
    """Yield the lines; keys that two patches share are said once."""
    open_path: Path = ()
    for patch in patches:
        parents = patch.path if patch.op == "append" else patch.path[:-1]
        shared = _shared(open_path, parents)
        yield from ((Mark.CONTEXT, _key(parents, depth)) for depth in range(shared, len(parents)))
        open_path = parents
        if patch.op == "remove":
            yield Mark.REMOVED, f"{_indent(parents)}# without {render(patch.path)}"
        else:
            yield from ((Mark.ADDED, _indent(parents) + line) for line in _written(patch))


def _written(patch: Patch) -> list[str]:
    value: Json = patch.value
    last = patch.path[-1] if patch.path else ""
    if patch.op == "append" or isinstance(last, int):
        value = [value]
    elif patch.path:
        value = {str(last): value}
    # A list is indented below its key; here that key is on a line of its own.
    return yaml_text.block(value).rstrip("\n").splitlines()


def _key(path: Path, depth: int) -> str:
    part = path[depth]
    if isinstance(part, int):
        return f"{_indent(path[:depth])}- # [{part}]"
    return _indent(path[:depth]) + yaml_text.inline({part: None}).strip("{}").removesuffix(" null")


def _indent(path: Path) -> str:
    return "  " * len(path)


def _shared(first: Path, second: Path) -> int:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


_TAGS: Final = {Mark.ADDED: "ins", Mark.REMOVED: "del"}


def advice(finding: Finding) -> Html:
    """Return what a reader needs to mend a finding."""
    return join(_advice(finding))


def _advice(finding: Finding) -> Iterator[Html]:
    if finding.hint:
        yield tag("p", finding.hint, class_="hint")
    if finding.patches:
        yield tag("p", "Admission makes this change:", class_="lead")
        yield _diff(finding.patches)
    if isinstance(finding.fix, Patches):
        yield tag("p", f"Fix{_caution(finding.fix)}:", class_="lead")
        yield _diff(finding.fix.patches)
    elif isinstance(finding.fix, Replacement):
        yield tag("p", f"Write this instead{_caution(finding.fix)}:", class_="lead")
        text = "---\n".join(yaml_text.block(obj) for obj in finding.fix.objects).rstrip("\n")
        yield tag("pre", tag("ins", text))


def _caution(fix: Patches | Replacement) -> str:
    return "" if fix.safe else ", which may alter scheduling or cost"


def _diff(patches: tuple[Patch, ...]) -> Html:
    lines = []
    for mark, line in patch_lines(patches):
        name = _TAGS.get(mark)
        lines.append(tag(name, line) if name else escape(line))
    return tag("pre", join(lines, "\n"))


@dataclass(frozen=True, slots=True)
class Likeness:
    """When objects are alike, beside their kind.

    Attributes:
        messages: whether findings must say the same, or only be of the same policies, places and remedies. Messages may name
            figures of their object.
        namespaces: whether they must be in one namespace.
    """

    messages: bool = True
    namespaces: bool = True


def alike(objects: Iterable[Audited], likeness: Likeness) -> list[list[Audited]]:
    """Group objects; each group stands where its first object does."""
    groups: dict[tuple[str, ...], list[Audited]] = {}
    for audited in objects:
        name, found = audited.object, audited.findings
        if not likeness.messages:
            found = tuple(replace(finding, message="") for finding in found)
        # Patches hold objects, which have no hash; what is written of them does.
        key = (name.api_version, name.kind, name.namespace if likeness.namespaces else "", repr(found))
        groups.setdefault(key, []).append(audited)
    return list(groups.values())


def filters(shown: Sequence[Audited]) -> Html:
    """Return the form that narrows some objects down."""
    present = {finding.action for audited in shown for finding in audited.findings}
    return tag(
        "form",
        # The script fills these from the list, where everything stands already.
        _select("namespace", "Namespace", ()),
        _select("policy", "Policy", ()),
        _select("action", "Would be", [(MARKS[each], VERBS[each]) for each in Action if each in present]),
        tag("label", "Search", tag("input", type="search", name="search", placeholder="Name, field or words")),
        tag("button", "Reset", type="reset"),
        tag("output", aria_live="polite"),
        class_="filters",
        hidden="",
    )


def _select(name: str, label: str, options: Sequence[tuple[str, str]]) -> Html:
    found = [tag("option", text, value=value) for value, text in options]
    return tag("label", label, tag("select", Html('<option value="">All</option>'), *found, name=name))


MOST_IN_FULL: Final = 2_000
_IN_PLACE: Final = 2


class Shared:
    """The bodies of findings in one report of some findings, and the kinds of objects that are alike."""

    def __init__(self, findings: int) -> None:
        self._limit = _IN_PLACE if findings > MOST_IN_FULL else findings
        self._seen: Counter[Html] = Counter()
        self._numbers: dict[Html, tuple[int, str]] = {}
        self._kinds: set[str] = set()

    @property
    def is_long(self) -> bool:
        """Whether the report is one of many findings."""
        return self._limit == _IN_PLACE

    def __call__(self, body: Html, policy: str) -> str:
        """Return where a body stands once for all; empty where it is to be written in place."""
        self._seen[body] += 1
        if not body or self._seen[body] <= self._limit:
            return ""
        number, _ = self._numbers.setdefault(body, (len(self._numbers) + 1, policy))
        return f"#f{number}"

    def kind(self, name: str) -> str:
        """Return the kind that a list says for all its objects; empty where each says its own."""
        if not self.is_long:
            return ""
        self._kinds.add(name)
        return name

    @property
    def style(self) -> str:
        """Rules by which links to what stands once show the name of their policy, and objects that of their kind."""
        owners: dict[str, list[str]] = {}
        for number, policy in self._numbers.values():
            owners.setdefault(policy, []).append(f'[href="#f{number}"]::after')
        links = "".join(f"{','.join(links)}{{content:{_quoted(policy)}}}\n" for policy, links in sorted(owners.items()))
        kinds = (
            f"[data-kind={_quoted(kind)}]>li::before{{content:{_quoted(f'{kind}/')}}}\n" for kind in sorted(self._kinds)
        )
        return links + "".join(kinds)

    def of(self, policy: str) -> Html:
        """Return what links on findings of a policy point to."""
        shown = [(body, number) for body, (number, owner) in self._numbers.items() if owner == policy]
        return join(tag("div", body, id=f"f{number}", class_="body") for body, number in shown)


def _quoted(text: str) -> str:
    """Write a text as a string of CSS, in which anything but a letter is escaped by its number (CSS Syntax level 3, 4.3.7)."""
    return (
        '"' + "".join(c if (c.isalnum() and c.isascii()) or c in "/-" else f"\\{ord(c):06x}" for c in plain(text)) + '"'
    )


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
    if finding.related:
        more = f" and {len(finding.related) - 1:,} more" if finding.related[1:] else ""
        path = join((path, tag("p", f"also reported for {finding.related[0]}{more}")))
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
