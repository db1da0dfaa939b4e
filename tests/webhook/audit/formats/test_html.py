from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Final

import audit_reports
import pytest
from audit_reports import with_audited
from msgspec.structs import replace

from gpugate.webhook.audit.formats.html import render
from gpugate.webhook.audit.formats.html.breakdown import MOST_NAMESPACES
from gpugate.webhook.audit.formats.json import read
from gpugate.webhook.audit.formats.json import render as render_json
from gpugate.webhook.audit.model import Action

if TYPE_CHECKING:
    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport

VOID: Final = {"meta", "input"}
# What HTML lets be left out: the start tag that ends an element of the same list (living standard, 13.1.2.4).
ENDS: Final = {"li": {"li"}, "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "td": {"td", "th", "tr"}, "th": {"td", "th", "tr"},
               "tr": {"tr", "tbody"}, "thead": {"tbody"}, "tbody": {"tbody"}, "p": {"p", "li"}}  # fmt: skip


class Page(HTMLParser):
    """Reads a page and keeps a list of its mistakes."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.mistakes: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.feed(text)
        self.close()
        self.mistakes += [f"<{name}> is never closed" for name in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        self.mistakes += [f"<{tag}> has {name} twice" for name in {n for n in names if names.count(n) > 1}]
        while self.open and tag in ENDS.get(self.open[-1], set()):
            self.open.pop()
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] != tag and self.open[-1] in ENDS:
            self.open.pop()
        if not self.open or self.open[-1] != tag:
            self.mistakes.append(f"</{tag}> ends nothing (open: {self.open[-3:]})")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        key = self.open[-1] if self.open else ""
        self.text[key] = self.text.get(key, "") + data

    @property
    def identities(self) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get("id"))]


@pytest.fixture(scope="module")
def large() -> AuditReport:
    return audit_reports.audit(3_000)


@pytest.fixture(scope="module")
def ten_thousand() -> AuditReport:
    return audit_reports.audit(10_000)


@pytest.fixture(scope="module")
def large_text(large: AuditReport, presentation: Presentation) -> str:
    return render(large, presentation)


@pytest.fixture(scope="module", params=["audit", "hostile", "large"])
def text(request: pytest.FixtureRequest, presentation: Presentation) -> str:
    report = request.getfixturevalue(request.param)
    return render(report, dataclasses.replace(presentation, rbac="kind: ClusterRole\n"))


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_every_element_is_closed_once(page: Page) -> None:
    assert page.mistakes == []


def test_every_link_leads_somewhere_on_the_page(page: Page) -> None:
    targets = {value.removeprefix("#") for _, attributes in page.elements if (value := attributes.get("href"))}
    assert targets - set(page.identities) == set()
    assert len(page.identities) == len(set(page.identities))


def test_nothing_is_asked_for_and_nothing_runs_but_its_own(page: Page, text: str) -> None:
    attributes = {name for _, found in page.elements for name in found}
    assert {tag for tag, _ in page.elements} & {
        "img",
        "link",
        "iframe",
        "object",
        "embed",
        "base",
        "video",
        "audio",
    } == set()
    assert {name for name in attributes if name.startswith("on")} | attributes & {
        "src",
        "srcset",
        "style",
        "action",
    } == set()
    assert {value[0] for _, found in page.elements if (value := found.get("href"))} == {"#"}
    assert re.findall(r"url\(|@import|fetch\(|XMLHttpRequest|WebSocket|innerHTML|eval\(", text) == []


def test_the_security_policy_allows_one_script_and_one_style_by_hash(page: Page, text: str) -> None:
    (policy,) = (a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"
        for part in (
            *re.findall(r"<style>(.*?)</style>", text, re.DOTALL),
            *re.findall(r"<script>(.*?)</script>", text, re.DOTALL),
        )
    ]

    assert policy == (
        f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; base-uri 'none'; form-action 'none'"
    )
    # A page whose policy comes after its style or script would have run them by then.
    assert text.index("Content-Security-Policy") < min(text.index("<style>"), text.index("<script>"))


def test_hostile_names_are_text(hostile: AuditReport, presentation: Presentation) -> None:
    page = Page(render(hostile, presentation))

    assert [attributes for tag, attributes in page.elements if tag == "script"] == [
        {"type": "application/json", "id": "data"},
        {},
    ]
    assert "</script><script>alert(1)</script><img src=x onerror=alert(1)>" in page.text["h1"]


def embedded(text: str) -> Any:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(data)


def test_the_data_is_the_json_document(audit: AuditReport, presentation: Presentation) -> None:
    assert embedded(render(audit, presentation)) == json.loads(render_json(audit, presentation))


def test_the_data_of_a_hostile_audit_survives(hostile: AuditReport, presentation: Presentation) -> None:
    assert read(json.dumps(embedded(render(hostile, presentation)))) == hostile


def test_long_data_is_packed(large: AuditReport, large_text: str, presentation: Presentation) -> None:
    found = embedded(large_text)

    assert (found["contains"], found["encoding"]) == ("gpugate.dev/audit/v1", "gzip+base64")
    assert json.loads(gzip.decompress(base64.b64decode(found["data"]))) == json.loads(render_json(large, presentation))


def test_every_object_and_message_is_there_without_a_script(audit: AuditReport, presentation: Presentation) -> None:
    text = render(audit, presentation)
    shown = " ".join(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL).split())

    for each in audit.audited:
        for finding in each.findings:
            assert str(each.object) in shown
            assert _written(finding.message) in shown
            assert _written(finding.path) in shown


def test_pending_pods_have_a_section(audit: AuditReport, presentation: Presentation) -> None:
    text = " ".join(render(audit, presentation).split())

    assert "No NodePool can launch a node for 3 Pods with GPUs." in text
    assert "Job/team-llm/pretrain (2), Pod/research/notebook-1 (1)" in text
    assert audit.pending[0].reason in text
    assert "id=pending" not in render(replace(audit, pending=()), presentation)


def _written(text: str) -> str:
    return " ".join(_written_whole(text).split())


def _written_whole(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@pytest.mark.parametrize(
    "unlike",
    [
        pytest.param({}, id="of-a-cluster"),
        pytest.param({"namespaces": False}, id="every-message-is-another"),
        pytest.param({"namespaces": True}, id="every-object-has-its-own-namespace-too"),
        pytest.param({"alone": True}, id="and-one-finding"),
    ],
)
def test_ten_thousand_findings_fit_in_two_megabytes(
    ten_thousand: AuditReport, presentation: Presentation, unlike: dict[str, bool]
) -> None:
    report = audit_reports.all_different(ten_thousand, **unlike) if unlike else ten_thousand

    assert sum(len(each.findings) for each in report.audited) >= 10_000
    assert len(render(report, presentation).encode()) < 2_000_000


def unquoted(text: str) -> str:
    """Read the escapes of a CSS string, to which one space after the number belongs."""
    return re.sub(r"\\([0-9a-f]{1,6}) ?", lambda escaped: chr(int(escaped[1], 16)), text)


def as_shown(text: str) -> str:
    """Write in each list what the style sheet adds: the kind before each object, and the common words of messages."""
    added = {
        name: {variable: unquoted(value) for variable, value in re.findall(r'--(\w+):"(.*?)"', rules)}
        for name, rules in re.findall(r"^\.(t\d+){(.*)}$", text, re.MULTILINE)
    }

    def item(kind: str, words: dict[str, str], content: str) -> str:
        name, *messages = content.split("<p>")
        shown = [
            f"<p>{_written_whole(words.get(f'b{n}', ''))}{message}{_written_whole(words.get(f'e{n}', ''))}"
            for n, message in enumerate(messages, 1)
        ]
        return f"<li>{kind}/{name}{''.join(shown)}"

    def whole(match: re.Match[str]) -> str:
        kind, style, content = match.groups()
        return "".join(item(kind, added[style] if style else {}, part) for part in content.split("<li>")[1:])

    return re.sub(r"<ol data-kind=(\w+)(?: class=(t\d+))?>(.*?)</ol>", whole, text, flags=re.DOTALL)


@pytest.mark.parametrize("namespaces", [False, True])
def test_of_many_findings_every_message_stands_with_its_object(
    large: AuditReport,
    presentation: Presentation,
    namespaces: bool,  # noqa: FBT001 -- a parameter
) -> None:
    report = audit_reports.all_different(large, namespaces=namespaces)
    text = render(report, presentation)
    lists = as_shown(text).partition("<section id=today>")[2].partition("<section id=namespaces>")[0]

    assert Page(text).mistakes == []
    for each in report.audited:
        at = re.search(rf"[>]{re.escape(_written(str(each.object)))}[<,]", lists) if each.findings else None
        after = lists[at.end() : at.end() + 200_000] if at else ""
        assert [found.message for found in each.findings if _written(found.message) not in after] == []


def test_a_link_without_text_shows_the_policy_whose_advice_it_leads_to(large_text: str) -> None:
    named = {
        link: policy
        for links, policy in re.findall(r'^(\[href=".*?){content:"(.*?)"}$', large_text, re.MULTILINE)
        for link in re.findall(r"#f\d+", links)
    }
    pages = dict(
        re.findall(r"<summary><b>(.*?)</b>.*?</summary>(.*?)</details>", large_text.partition("id=about")[2], re.DOTALL)
    )

    assert set(named) == set(re.findall(r"<a href=(#f\d+)></a>", large_text)) != set()
    assert [link for link, policy in named.items() if f"id={link[1:]} " not in pages[policy]] == []


def test_the_style_shows_the_kind_of_every_list_of_many(large_text: str) -> None:
    shown = re.findall(r'^\[data-kind="(.*?)"\]>li::before{content:"(.*?)"}$', large_text, re.MULTILINE)

    assert dict(shown) == {kind: f"{kind}/" for kind in re.findall(r"<ol data-kind=(\w+)", large_text)} != {}


@pytest.mark.parametrize(
    ("messages", "in_list"),
    [
        pytest.param(
            ["limit is 4", "limit is 8", "limit is 16", "limit is 32"], ["4", "8", "16", "32"], id="beginning"
        ),
        pytest.param(["4 GPUs idle", "8 GPUs idle", "9 GPUs idle", "7 GPUs idle"], ["4", "8", "9", "7"], id="end"),
        pytest.param(
            ["has 4 of 8 GPUs", "has 1 GPUs", "has 2 GPUs", "has 3 GPUs"], ["4 of 8", "1", "2", "3"], id="both"
        ),
        pytest.param(
            ["no GPU", "no GPU no GPU", "no GPU", "no GPU"], ["GPU", "GPU no GPU", "GPU", "GPU"], id="repeated"
        ),
        pytest.param(["a", "b", "c", "d"], ["a", "b", "c", "d"], id="nothing"),
        pytest.param(
            ['"<a>" & \\ url(x) é 1', '"<a>" & \\ url(x) é 2', '"<a>" & \\ url(x) é 3', '"<a>" & \\ url(x) é ::4'],
            ["1", "2", "3", "::4"],
            id="characters-of-markup",
        ),
        pytest.param(["at 1\nof", "at 2\nof", "at 3\nof", "at 4\nof"], ["1", "2", "3", "4"], id="several-lines"),
        pytest.param(
            ["limit is 4", "limit is 8", "limit is 16"], ["limit is 4", "limit is 8", "limit is 16"], id="three-objects"
        ),
    ],
)
def test_the_style_adds_the_common_words_of_messages(
    large: AuditReport, presentation: Presentation, messages: list[str], in_list: list[str]
) -> None:
    first = next(each for each in large.audited if each.findings)
    finding = replace(first.findings[0], path="spec.of.these")
    alike = [
        replace(first, object=replace(first.object, name=f"like-{n}"), findings=(replace(finding, message=message),))
        for n, message in enumerate(messages)
    ]
    text = render(with_audited(large, [*alike, *large.audited]), presentation)

    # The summary of the entry has the first object, with its message.
    assert messages_of_alike(text, len(alike)) == [_written(message) for message in in_list[1:]]
    assert messages_of_alike(as_shown(text), len(alike)) == [_written(message) for message in messages[1:]]


def messages_of_alike(text: str, count: int) -> list[str]:
    behind = [text.partition(f"/like-{n}")[2].partition("<p>")[2] for n in range(1, count)]
    return [re.split("<li>|</ol>|</details>", part)[0] for part in behind]


def test_namespaces_that_are_too_many_are_summed_up(large: AuditReport, presentation: Presentation) -> None:
    report = audit_reports.all_different(large, namespaces=True)
    table = render(report, presentation).partition("<section id=namespaces>")[2].partition("</section>")[0]
    there = len({each.object.namespace for each in report.audited if each.findings})

    assert table.count("<tr>") == MOST_NAMESPACES + 1
    assert f"And {there - MOST_NAMESPACES:,} more: objects " in table


def test_objects_alike_are_one_entry_with_all_their_names(audit: AuditReport, presentation: Presentation) -> None:
    first = next(each for each in audit.audited if each.action is Action.DENY and each.allocated)
    many = tuple(replace(first, object=replace(first.object, name=f"copy-{number}")) for number in range(5))
    text = render(with_audited(audit, many), presentation)

    assert "and 4 similar" in text
    assert all(f"copy-{number}" in text for number in range(5))
    assert "<span class=count>5</span>" in text


def test_a_table_of_a_policy_is_a_table_of_the_page(large_text: str) -> None:
    page = large_text.partition("<b>pods/hidden-gpu-access</b>")[2].partition("</details>")[0]
    _, header, *rows = page.partition("<table>")[2].partition("</table>")[0].split("<tr>")

    assert header.split("<th>")[1:] == ["the Pod", "first group", "second group", "third group"]
    assert {row.count("<td>") for row in rows} == {4}


def test_an_audit_of_nothing_is_a_page_too(audit: AuditReport, presentation: Presentation) -> None:
    text = render(
        replace(with_audited(audit, ()), counts={}, cost=None, not_evaluated=(), expired=(), unused=(), remarks=()),
        presentation,
    )

    assert Page(text).mistakes == []
    assert "No object would be denied." in text


def test_names_that_are_pseudonyms_are_said_to_be(audit: AuditReport, presentation: Presentation) -> None:
    assert "replaced by pseudonyms" in render(replace(audit, anonymized=True), presentation)


def test_the_same_audit_is_the_same_file(large_text: str, presentation: Presentation) -> None:
    assert render(audit_reports.audit(3_000), presentation) == large_text
