from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.tally import CLUSTER, code

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpugate.webhook.audit.model import Audited, AuditReport

    Open = Callable[..., Page]

ENTRIES = "#findings .list > details"
SHOWN = f"{ENTRIES}:visible"


def names(page: Page, entries: str = SHOWN) -> list[str]:
    """The objects of entries, also where several are alike."""
    found: list[str] = page.locator(entries).evaluate_all(
        """all => all.flatMap(entry => {
            const alike = [...entry.querySelectorAll(":scope > ol > li")].map(li => li.textContent.split(",")[0]);
            return alike.length ? alike : [entry.querySelector("summary > b").firstChild.textContent];
        })"""
    )
    return found


def expected(report: AuditReport, keep: Callable[[Audited], bool]) -> set[str]:
    return {str(each.object) for each in report.audited if each.findings and keep(each)}


def test_the_report_as_a_whole_looks_right_in_light_and_dark(
    opened: Open, audit: AuditReport, screenshots: Path
) -> None:
    backgrounds = []
    for scheme in ("light", "dark"):
        page = opened(audit, scheme=scheme)
        page.screenshot(path=screenshots / f"{scheme}.png", full_page=True)
        page.screenshot(path=screenshots / f"{scheme}-top.png")
        for section in ("changes", "findings", "namespaces", "policies", "pools", "gaps", "method"):
            page.locator(f"#{section}").evaluate("element => element.scrollIntoView()")
            page.screenshot(path=screenshots / f"{scheme}-{section}.png")
        backgrounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    assert len(set(backgrounds)) == 2


def test_a_namespace_filters(opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    page.select_option("select[name=namespace]", "team-llm")

    wanted = expected(audit, lambda each: each.object.namespace == "team-llm")
    assert set(names(page)) == wanted
    expect(page.locator("output")).to_have_text(f"{len(wanted)} of {len(expected(audit, bool))} objects")


def test_objects_of_the_cluster_are_a_namespace_of_their_own(opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    page.select_option("select[name=namespace]", CLUSTER)

    assert set(names(page)) <= expected(audit, lambda each: not each.object.namespace)


def test_a_policy_filters(opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    page.select_option("select[name=policy]", "pods/missing-gpu-toleration")

    def has(each: Audited) -> bool:
        return any(code(finding) == "pods/missing-gpu-toleration" for finding in each.findings)

    assert set(names(page)) == expected(audit, has) != set()


def test_a_consequence_filters(opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    page.select_option("select[name=action]", label="recorded")

    wanted = expected(audit, lambda each: any(finding.action is Action.RECORD for finding in each.findings))
    assert set(names(page)) == wanted != set()
    expect(page.locator("#today .empty")).to_be_visible()


def test_words_are_searched_for_in_everything(opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    page.fill("input[name=search]", "TOLERATION nosched")

    assert 0 < len(names(page)) < len(expected(audit, bool))
    for entry in page.locator(SHOWN).all():
        text = (entry.text_content() or "").lower()
        assert "toleration" in text
        assert "nosched" in text


def test_filters_together_and_their_reset(opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    before = names(page)
    page.select_option("select[name=namespace]", "team-llm")
    page.fill("input[name=search]", "no such words anywhere")
    assert names(page) == []

    page.click("button[type=reset]")
    expect(page.locator("#today .empty")).to_be_hidden()
    assert names(page) == before


@pytest.mark.parametrize("column", ["Object", "GPUs allocated", "$ / hour"])
def test_lists_are_sorted_by_a_column_and_back(column: str, opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    button = page.locator("#today .cols button", has_text=column)
    index = 0 if column == "Object" else ["GPUs allocated", "$ / hour"].index(column)

    def values() -> list[Any]:
        if column == "Object":
            return [name.casefold() for name in names(page, "#today .list > details")]
        figures = page.locator("#today .list > details").evaluate_all(
            "(all, index) => all.map(e => e.querySelectorAll('summary > i')[index]?.textContent ?? '')", index
        )
        return [sum(float(n.replace(",", "")) for n in re.findall(r"(?:^\$?|, )([\d,.]+)", text)) for text in figures]

    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    once = values()
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")

    descending = column != "Object"
    assert once == sorted(once, reverse=descending) != values()
    assert values() == sorted(values(), reverse=not descending)


def test_tables_are_sorted_by_a_column(opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    head = page.locator("#namespaces th", has_text="Denied")

    def column() -> list[int]:
        return [int(text) for text in page.locator("#namespaces tbody td:nth-child(2)").all_text_contents()]

    head.locator("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert column() == sorted(column(), reverse=True)
    head.locator("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert column() == sorted(column())


def test_a_fix_is_copied_as_yaml(opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    page.select_option("select[name=policy]", "pods/missing-gpu-toleration")
    entry = page.locator(SHOWN).first
    entry.locator("summary").click()
    button = entry.locator("pre", has_text="key: nvidia.com/gpu").locator("button").first
    button.click()

    expect(button).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("spec:\n")
    assert "- key: nvidia.com/gpu\n" in copied
    assert "Copy" not in copied


def test_the_keyboard_is_enough(opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"

    second = page.locator("#today .list > details").nth(1)
    second.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(second).to_have_attribute("open", "")


def test_a_policy_leads_to_its_page(opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    link = page.locator("#today details[open] li > a").first
    policy = link.text_content() or ""
    link.click()

    opened_page = page.locator("#about details[open]")
    expect(opened_page.locator("summary b")).to_have_text(policy)
    expect(opened_page.get_by_text("Why is this bad?")).to_be_visible()


def test_a_namespace_of_the_table_filters_the_lists(opened: Open, audit: AuditReport) -> None:
    page = opened(audit)
    page.click("#namespaces td a >> text=team-llm")

    expect(page.locator("output")).not_to_have_text(re.compile(rf"^{len(expected(audit, bool))} of"))
    assert set(names(page)) == expected(audit, lambda each: each.object.namespace == "team-llm")


def test_everything_is_there_without_scripts(opened: Open, audit: AuditReport, screenshots: Path) -> None:
    page = opened(audit, scripts=False)
    page.screenshot(path=screenshots / "without-scripts.png", full_page=True)

    assert set(names(page, ENTRIES)) == expected(audit, bool)
    expect(page.locator("form")).to_be_hidden()
    entry = page.locator(ENTRIES).first
    entry.locator("summary").click()
    expect(entry.locator("li").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_the_figures_of_gpus_fit_the_screen(
    scheme: str, width: int, opened: Open, measured: AuditReport, screenshots: Path
) -> None:
    page = opened(measured, scheme=scheme, width=width)
    page.screenshot(path=screenshots / f"gpus-{scheme}-{width}.png")
    for section in ("trend", "idle", "spending"):
        page.locator(f"#{section}").screenshot(path=screenshots / f"{section}-{scheme}-{width}.png")

    assert page.evaluate("document.documentElement.scrollWidth") == width
    # No figure of an idle GPU is beyond the edge of its table.
    assert page.evaluate(f"{_IDLE}.scrollWidth - {_IDLE}.clientWidth") == 0
    assert min(page.evaluate(_LINES)) > 20


_IDLE = "document.querySelector('#idle .scroll')"
_LINES = "[...document.querySelectorAll('#trend svg')].map(line => line.getBoundingClientRect().height)"


def test_a_narrow_screen_does_not_scroll_sideways(opened: Open, audit: AuditReport, screenshots: Path) -> None:
    page = opened(audit, width=390)
    page.screenshot(path=screenshots / "narrow.png", full_page=True)

    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_it_prints_with_the_details_of_what_would_be_denied(
    opened: Open, audit: AuditReport, screenshots: Path
) -> None:
    page = opened(audit)
    page.pdf(path=screenshots / "audit.pdf", prefer_css_page_size=True)
    pages = re.findall(rb"/Type\s*/Page[^s]", (screenshots / "audit.pdf").read_bytes())
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.screenshot(path=screenshots / "print.png", full_page=True)

    assert len(pages) > 3
    expect(page.locator("form.filters")).to_be_hidden()
    for item in page.locator("#today .list > details ul").all():
        expect(item).to_be_visible()


def test_the_data_can_be_saved(opened: Open, large: AuditReport, noticed: list[str]) -> None:
    page = opened(large)
    with page.expect_download() as download:
        page.click("footer button")

    document = json.loads(download.value.path().read_text())
    assert document["schema"] == "gpugate.dev/audit/v1"
    assert sum(len(each["findings"]) for each in document["objects"]) >= 10_000
    assert [each for each in noticed if not each.startswith("blob:")] == []
    noticed.clear()  # the page hands its own data to the browser as a blob


def test_ten_thousand_findings_are_shown_a_page_at_a_time(opened: Open, large: AuditReport, screenshots: Path) -> None:
    page = opened(large)
    page.screenshot(path=screenshots / "large-top.png")
    assert page.locator("#today .list > details:visible").count() == 50

    page.click("#today .more")
    assert page.locator("#today .list > details:visible").count() == 100
    page.fill("input[name=search]", "toleration")
    assert 0 < page.locator(SHOWN).count() <= 100


def test_a_namespace_filters_among_objects_alike_of_many(opened: Open, scattered: AuditReport) -> None:
    page = opened(scattered)
    second = page.locator("#today .list ol > li").nth(1).evaluate("li => li.firstChild.textContent")
    _, chosen, _ = second.split("/")
    page.select_option("select[name=namespace]", chosen)

    wanted = expected(scattered, lambda each: each.object.namespace == chosen)
    expect(page.locator("output")).to_have_text(f"{len(wanted)} of {len(expected(scattered, bool)):,} objects")
    entry = page.locator(SHOWN).first
    entry.evaluate("entry => { entry.open = true; }")
    assert [chosen in text for text in entry.locator("ol > li:visible").all_text_contents()] == [True]
    assert (entry.locator("summary u").text_content() or "").endswith(f", 1 in {chosen}")


def test_the_policy_of_shared_advice_is_shown_without_scripts(opened: Open, large: AuditReport) -> None:
    page = opened(large, scripts=False)
    shown = page.locator("#findings .list li > a[href^='#f']").first.evaluate(
        "link => getComputedStyle(link, '::after').content"
    )

    assert shown.strip('"') in {code(finding) for each in large.audited for finding in each.findings}


def test_a_policy_filters_among_links_without_text(opened: Open, large: AuditReport) -> None:
    page = opened(large)
    page.select_option("select[name=policy]", "pods/wildcard-toleration")

    def has(each: Audited) -> bool:
        return any(code(finding) == "pods/wildcard-toleration" for finding in each.findings)

    expect(page.locator("output")).to_have_text(re.compile(rf"^{len(expected(large, has)):,} of "))


def test_advice_that_stands_elsewhere_comes_to_where_it_is_read(opened: Open, large: AuditReport) -> None:
    page = opened(large)
    link = page.locator("#findings .list > details > ul > li > a[href^='#f']").first.element_handle()
    finding = link.evaluate_handle("link => link.parentElement").as_element()
    before = finding.text_content() or ""
    link.evaluate("link => { link.closest('details').open = true; }")

    finding.wait_for_selector("a[href^='#p']", state="attached")
    assert len(finding.text_content() or "") > len(before)


def test_the_kind_of_objects_alike_is_shown_without_scripts(opened: Open, large: AuditReport) -> None:
    page = opened(large, scripts=False)
    alike = page.locator(f"{ENTRIES} > ol > li").first
    kind = alike.evaluate("li => getComputedStyle(li, '::before').content").strip('"')

    assert f"{kind}{(alike.text_content() or '').split(',')[0]}" in expected(large, bool)


def test_the_kind_of_objects_alike_is_text_with_scripts(opened: Open, large: AuditReport) -> None:
    page = opened(large)

    alike = page.locator(f"{ENTRIES} > ol > li").evaluate_all("all => all.map(li => li.firstChild.data.split(',')[0])")
    assert set() < set(alike) <= expected(large, bool)
    assert page.locator("[data-kind]").count() == 0


def test_messages_of_objects_alike_are_complete_without_scripts(opened: Open, scattered: AuditReport) -> None:
    page = opened(scattered, scripts=False)
    shown = page.locator(f"{ENTRIES} > ol[class] > li").evaluate_all(
        """all => all.map(li => [li.firstChild.data.split(",")[0], ...[...li.querySelectorAll("p")].map(p =>
            [getComputedStyle(p, "::before").content, p.textContent, getComputedStyle(p, "::after").content]
                .map((text, i) => i === 1 ? text : text === "none" ? "" : text.slice(1, -1).replace(/\\\\(.)/g, "$1"))
                .join(""))])"""
    )

    assert_complete(shown, scattered)


def test_messages_of_objects_alike_are_text_with_scripts(opened: Open, scattered: AuditReport) -> None:
    page = opened(scattered)
    shown = page.locator(f"{ENTRIES} > ol > li:has(p)").evaluate_all(
        "all => all.map(li => [li.firstChild.data.split(',')[0], ...[...li.querySelectorAll('p')].map(p => p.textContent)])"
    )

    assert_complete([[name.partition("/")[2], *messages] for name, *messages in shown], scattered)
    assert page.locator("#findings ol[class]").count() == 0


def assert_complete(shown: list[list[str]], report: AuditReport) -> None:
    """Each object has all its messages; `shown` has the name without its kind, and the messages."""
    messages: dict[str, list[list[str]]] = {}
    for each in report.audited:
        said = sorted(" ".join(finding.message.split()) for finding in each.findings)
        messages.setdefault(str(each.object).partition("/")[2], []).append(said)
    wrong = [name for name, *texts in shown if sorted(" ".join(t.split()) for t in texts) not in messages[name]]
    assert wrong == []
    assert len(shown) > 1_000
