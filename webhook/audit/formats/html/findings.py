"""The findings section of the HTML report: objects by action, each with its findings and fixes.

Most of ten thousand findings repeat a few hundred texts. Large reports contain each text once, and findings link to it. The
links have no text: the style sheet adds the name of the policy, so it is visible without a script. In the same way it adds what
the names and messages of similar objects have in common.
"""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Patches, Replacement
from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.formats.html.breakdown import MOST_NAMESPACES
from gpugate.webhook.audit.formats.html.markup import MARKS, NOTHING, VERBS, Html, escape, join, last_paragraphs, tag
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.tally import code, usd
from gpugate.webhook.report import yaml_text
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.findings import Patch
    from gpugate.webhook.audit.model import Audited, AuditReport, Finding
    from gpugate.webhook.audit.words import Amounts


class Mark(Enum):
    """How a line of a diff is shown."""

    CONTEXT = " "
    ADDED = "+"
    REMOVED = "-"


Line = tuple[Mark, str]


def patch_lines(patches: Iterable[Patch]) -> Iterator[Line]:
    """Yield the lines of a diff; shared parent keys appear once."""
    open_path: Path = ()
    for patch in patches:
        parents = patch.path if patch.op == "append" else patch.path[:-1]
        shared = _shared(open_path, parents)
        yield from ((Mark.CONTEXT, _key(parents, depth)) for depth in range(shared, len(parents)))
        open_path = parents
        if patch.op == "remove":
            yield Mark.REMOVED, f"{_indent(parents)}# remove {render(patch.path)}"
        else:
            yield from ((Mark.ADDED, _indent(parents) + line) for line in _written(patch))


def _written(patch: Patch) -> list[str]:
    value: Json = patch.value
    last = patch.path[-1] if patch.path else ""
    if patch.op == "append" or isinstance(last, int):
        value = [value]
    elif patch.path:
        value = {str(last): value}
    # YAML indents a list below its key, which is on its own line here.
    return yaml_text.block(value).rstrip("\n").splitlines()


def _key(path: Path, depth: int) -> str:
    part = path[depth]
    if isinstance(part, int):
        return f"{_indent(path[:depth])}- # [{part}]"
    return _indent(path[:depth]) + yaml_text.inline({part: None}).strip("{}").removesuffix(" null")


def _indent(path: Path) -> str:
    return "  " * len(path)


def _shared(first: Sequence[object], second: Sequence[object]) -> int:
    count = 0
    for left, other in zip(first, second, strict=False):
        if left != other:
            break
        count += 1
    return count


_TAGS: Final = {Mark.ADDED: "ins", Mark.REMOVED: "del"}


def advice(finding: Finding) -> Html:
    """Return how to fix a finding."""
    return join(_advice(finding))


def _advice(finding: Finding) -> Iterator[Html]:
    if finding.hint:
        yield tag("p", finding.hint, class_="hint")
    if finding.patches:
        yield tag("p", "The webhook makes this change:", class_="lead")
        yield _diff(finding.patches)
    if isinstance(finding.fix, Patches):
        yield tag("p", f"Fix{_caution(finding.fix)}:", class_="lead")
        yield _diff(finding.fix.patches)
    elif isinstance(finding.fix, Replacement):
        yield tag("p", f"Replace the object{_caution(finding.fix)}:", class_="lead")
        text = "---\n".join(yaml_text.block(obj) for obj in finding.fix.objects).rstrip("\n")
        yield tag("pre", tag("ins", text))


def _caution(fix: Patches | Replacement) -> str:
    return "" if fix.safe else ", which may change scheduling or cost"


def _diff(patches: tuple[Patch, ...]) -> Html:
    lines = []
    for mark, line in patch_lines(patches):
        name = _TAGS.get(mark)
        lines.append(tag(name, line) if name else escape(line))
    return tag("pre", join(lines, "\n"))


@dataclass(frozen=True, slots=True)
class Likeness:
    """Which objects of one kind are shown as one entry.

    Attributes:
        messages: whether their findings must have equal messages, or only equal policies, paths and fixes. Messages may
            contain figures of the object.
        namespaces: whether they must be in the same namespace.
    """

    messages: bool = True
    namespaces: bool = True


def alike(objects: Iterable[Audited], likeness: Likeness) -> list[list[Audited]]:
    """Group objects that are alike, in the order of their first objects."""
    groups: dict[tuple[str, ...], list[Audited]] = {}
    for audited in objects:
        name, compared = audited.object, audited.findings
        if not likeness.messages:
            compared = tuple(msgspec.structs.replace(finding, message="") for finding in compared)
        # Patches contain unhashable values; their text is hashable.
        key = (name.api_version, name.kind, name.namespace if likeness.namespaces else "", repr(compared))
        groups.setdefault(key, []).append(audited)
    return list(groups.values())


def filters(listed: Sequence[Audited]) -> Html:
    """Return the form that filters the objects."""
    present = {finding.action for audited in listed for finding in audited.findings}
    return tag(
        "form",
        # The script fills these two from the list.
        _select("namespace", "Namespace", ()),
        _select("policy", "Policy", ()),
        _select("action", "Action", [(MARKS[action], VERBS[action]) for action in Action if action in present]),
        tag("label", "Search", tag("input", type="search", name="search", placeholder="Name, field or text")),
        tag("button", "Reset", type="reset"),
        tag("output", aria_live="polite"),
        class_="filters",
        hidden="",
    )


def _select(name: str, label: str, options: Sequence[tuple[str, str]]) -> Html:
    choices = [tag("option", text, value=value) for value, text in options]
    return tag("label", label, tag("select", Html('<option value="">All</option>'), *choices, name=name))


MOST_IN_FULL: Final = 2_000
_IN_PLACE: Final = 2
# In a shorter list, the style rule of the common words would be longer than the words.
_FEWEST_IN_COMMON: Final = 4


@dataclass(frozen=True, slots=True)
class Common:
    """What the messages of one finding have in common: the words that all begin with, and the words that all end with.

    Both are whole words with the space beside them. The rest of a message is empty only if all messages are equal.
    """

    start: str = ""
    end: str = ""

    @classmethod
    def of(cls, messages: Sequence[str]) -> Common:
        """Return what messages, each one line, have in common."""
        if len(set(messages)) == 1:
            return cls(messages[0])
        words = [message.split(" ") for message in messages]
        # One word remains, so that the spaces around it stay.
        most = min(map(len, words)) - 1
        start = min(_shared(min(words), max(words)), most)
        ends = [line[:start:-1] for line in words]
        end = min(_shared(min(ends), max(ends)), most - start)
        first = words[0]
        return cls(
            "".join(f"{word} " for word in first[:start]), "".join(f" {word}" for word in first[len(first) - end :])
        )

    def without(self, message: str) -> str:
        """Return the rest of a message."""
        return message.removeprefix(self.start).removesuffix(self.end)


class Shared:
    """Texts that a large report contains once: bodies of findings, and what similar objects have in common."""

    def __init__(self, findings: int) -> None:
        self._limit = _IN_PLACE if findings > MOST_IN_FULL else findings
        self._uses: Counter[Html] = Counter()
        self._numbers: dict[Html, tuple[int, str]] = {}
        self._kinds: set[str] = set()
        self._commons: dict[tuple[Common, ...], int] = {}

    @property
    def is_long(self) -> bool:
        """Whether the report is large, so that repeated texts are shared."""
        return self._limit == _IN_PLACE

    def __call__(self, body: Html, policy: str) -> str:
        """Return the link to a shared body; empty if the body is written in place."""
        self._uses[body] += 1
        if not body or self._uses[body] <= self._limit:
            return ""
        number, _ = self._numbers.setdefault(body, (len(self._numbers) + 1, policy))
        return f"#f{number}"

    def kind(self, name: str) -> str:
        """Return the kind if the list states it for all its objects; else empty."""
        if not self.is_long:
            return ""
        self._kinds.add(name)
        return name

    def common(self, messages: Sequence[Sequence[str]]) -> tuple[Sequence[Common], str]:
        """Return what the messages of each finding have in common, and the class of a list to which the style adds it.

        `messages` are those of each object, as many for each. The class is empty if the list contains them in full.
        """
        if not self.is_long or len(messages) < _FEWEST_IN_COMMON or not messages[0]:
            return [Common()] * len(messages[0]), ""
        commons = tuple(Common.of(texts) for texts in zip(*messages, strict=True))
        if not any(common.start or common.end for common in commons):
            return commons, ""
        number = self._commons.setdefault(commons, len(self._commons) + 1)
        return commons, f"t{number}"

    @property
    def style(self) -> str:
        """The style rules that add the policy to links without text, and what is in common to lists of objects."""
        owners: dict[str, list[str]] = {}
        for number, policy in self._numbers.values():
            owners.setdefault(policy, []).append(f'[href="#f{number}"]::after')
        links = "".join(
            f"{','.join(links)}{{content:{_quoted(plain(policy))}}}\n" for policy, links in sorted(owners.items())
        )
        kinds = (
            f"[data-kind={_quoted(kind)}]>li::before{{content:{_quoted(f'{kind}/')}}}\n"
            for kind in map(plain, sorted(self._kinds))
        )
        return links + "".join(kinds) + "".join(self._message_rules())

    def _message_rules(self) -> Iterator[str]:
        # The variables are of the list, because a browser compares every paragraph with each rule for paragraphs.
        for commons, number in self._commons.items():
            texts = [
                (f"--{side}{n}", text)
                for n, c in enumerate(commons, 1)
                for side, text in (("b", c.start), ("e", c.end))
            ]
            yield f".t{number}{{{';'.join(f'{name}:{_quoted(text)}' for name, text in texts if text)}}}\n"
        for n in range(1, max(map(len, self._commons), default=0) + 1):
            paragraph = f"ol[class^=t]>li>p:nth-of-type({n})"
            yield f"{paragraph}::before{{content:var(--b{n})}}\n{paragraph}::after{{content:var(--e{n})}}\n"

    def of(self, policy: str) -> Html:
        """Return the shared bodies of a policy, to which its findings link."""
        bodies = [(body, number) for body, (number, owner) in self._numbers.items() if owner == policy]
        return join(tag("div", body, id=f"f{number}", class_="body") for body, number in bodies)


def _quoted(text: str) -> str:
    """Return a CSS string; all but ASCII letters, digits and `_SAFE` are escaped (CSS Syntax level 3, 4.3.7)."""
    # The space ends the number. Without it, a browser would take the next space of the text.
    return '"' + "".join(c if c.isascii() and (c.isalnum() or c in _SAFE) else f"\\{ord(c):x} " for c in text) + '"'


_SAFE: Final = frozenset(" /-.,:;=_%+")
_ORDER: Final = list(Action)
_COLUMNS: Final = (("name", "Object"), ("gpus", "GPUs allocated"))
_OTHERS: Final = "The webhook would allow these objects: patched, with a warning, or unchanged."


def findings(report: AuditReport, shared: Shared, anchors: Mapping[str, str], amount: Amounts) -> Html:
    """Return the filters and both lists; `anchors` maps policies to their ids on the page."""
    worst = [audited for audited in report.audited if audited.action is Action.DENY]
    others = [audited for audited in report.audited if audited.findings and audited.action is not Action.DENY]
    namespaces = {audited.object.namespace for audited in (*worst, *others)}
    likeness = Likeness(
        messages=not shared.is_long, namespaces=not shared.is_long or len(namespaces) <= MOST_NAMESPACES
    )
    writer = _Writer(shared, anchors, say.growth(report, amount), likeness, amount)
    lists = (
        writer.section("today", "Would be denied", _intro(len(worst)), worst),
        writer.section("others", "Other findings", _OTHERS, others) if others else NOTHING,
    )
    return tag("div", filters([*worst, *others]), *lists, id="findings")


def _intro(count: int) -> str:
    if not count:
        return "No object would be denied."
    return (
        f"{say.plural(count, 'object')} would be denied if they or their Pods were created now. "
        "Running Pods are not affected."
    )


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the entries of objects; `growing` maps unbounded objects to their worst-case cost."""

    shared: Shared
    anchors: Mapping[str, str]
    growing: Mapping[str, str]
    likeness: Likeness
    amount: Amounts

    def section(self, name: str, title: str, intro: str, objects: Sequence[Audited]) -> Html:
        parts = [
            tag("h2", title, " ", tag("span", f"{len(objects):,}", class_="count")),
            tag("p", intro, class_="intro"),
        ]
        if objects:
            columns = (
                tag("span", text, data_sort=key) for key, text in (*_COLUMNS, ("usd", f"{self.amount.symbol} / hour"))
            )
            parts.append(tag("div", *columns, class_="cols"))
            entries = sorted(alike(objects, self.likeness), key=self._rank)
            parts.append(tag("div", *map(self._entry, entries), class_="list d"))
        return tag("section", *parts, id=name)

    def _rank(self, objects: Sequence[Audited]) -> tuple[int, float]:
        """Return the sort key of an entry: action, then the cost of all its objects."""
        first = objects[0]
        unbounded = str(first.object) in self.growing
        cost = inf if unbounded else usd(gpus for audited in objects for gpus in audited.allocated) or 0.0
        return _ORDER.index(first.action), -cost

    def _entry(self, objects: Sequence[Audited]) -> Html:
        """Return the entry of similar objects."""
        first = objects[0]
        allocated = [gpus for audited in objects for gpus in audited.allocated]
        cost, unbounded = usd(allocated), say.price(first, self.growing, self.amount)
        worst = say.worst_finding(first)
        order = sorted(range(len(first.findings)), key=lambda index: first.findings[index] is not worst)
        messages = [[audited.findings[index].message for index in order] for audited in objects]
        differ = messages.count(messages[0]) < len(messages)
        more = f" (+{len(order) - 1:,})" if len(order) > 1 else ""
        price = self.amount(cost) if cost is not None else unbounded if unbounded != say.UNKNOWN else ""
        figures = (tag("i", say.gpus_of(allocated) if allocated else ""), tag("i", price)) if allocated or price else ()
        pods = say.plural(first.pods, "Pod") if first.pods > 1 else ""
        beside = f"and {len(objects) - 1:,} similar" if objects[1:] else pods
        names = tag("b", str(first.object), tag("u", beside) if beside else NOTHING)
        return tag(
            "details",
            tag("summary", names, *figures, tag("em", worst.message if worst else "", more)),
            tag(
                "ul",
                *(self._finding(first.findings[i], first, in_summary=differ or not n) for n, i in enumerate(order)),
            ),
            self._members(objects, messages if differ else [[]] * len(objects)) if objects[1:] else NOTHING,
            class_=MARKS[first.action] if first.action is not Action.DENY else None,
        )

    def _finding(self, finding: Finding, audited: Audited, *, in_summary: bool) -> Html:
        policy = code(finding)
        # The summary contains the first message. Messages that differ between the objects are in the list of objects.
        message = NOTHING if in_summary else tag("p", finding.message)
        details = _location(finding) + advice(finding)
        mark = MARKS[finding.action] if finding.action is not audited.action else None
        whole = self.shared(Html(message + details), policy)
        if whole:
            return tag("li", tag("a", href=whole), class_=mark)
        part = self.shared(Html(details), policy) if message else ""
        if part:
            return tag("li", tag("a", href=part), message, class_=mark)
        return tag("li", tag("a", policy, href=f"#{self.anchors[policy]}"), message, Html(details), class_=mark)

    def _members(self, objects: Sequence[Audited], messages: Sequence[Sequence[str]]) -> Html:
        """Return the list of objects, each with its messages in the order of the findings above.

        The style sheet adds the kind before each name, and what the messages have in common.
        """
        kind = self.shared.kind(objects[0].object.kind)
        # A paragraph shows the end of a line as a space.
        lines = [[plain(message.replace("\n", " ")) for message in texts] for texts in messages]
        commons, style = self.shared.common(lines)
        return tag(
            "ol",
            *(
                tag(
                    "li",
                    str(audited.object).removeprefix(f"{kind}/"),
                    f", {say.gpus_of(audited.allocated)}" if audited.allocated else "",
                    # Not `escape`, to which the rest of a line is a line.
                    last_paragraphs(
                        Html(html.escape(common.without(line), quote=False))
                        for common, line in zip(commons, texts, strict=True)
                    ),
                )
                for audited, texts in zip(objects, lines, strict=True)
            ),
            data_kind=kind or None,
            class_=style or None,
        )


def _location(finding: Finding) -> Html:
    template = f" (Pods of this {finding.template_of})" if finding.template_of else ""
    path = tag("code", finding.location, template) if finding.location else NOTHING
    if finding.related:
        more = f" and {len(finding.related) - 1:,} more" if finding.related[1:] else ""
        path = join((path, tag("p", f"also reported for {finding.related[0]}{more}")))
    return join((path, tag("p", finding.note, class_="note") if finding.note else NOTHING))
