"""The page of `gpugate fleet report` in a real browser."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from gpugate.webhook.fleet.model import (
    ClusterRow,
    Day,
    ExpiredExemption,
    Fault,
    FleetReport,
    GpuCluster,
    GpuModel,
    GpuTeam,
    GroupRow,
    PolicyRegression,
    PolicyVersion,
    Regression,
    SilentCluster,
    Totals,
    WorstObject,
)
from gpugate.webhook.fleet.page import render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

NOW = dt.datetime(2026, 11, 23, 12, 0, tzinfo=dt.UTC)
AT = int(NOW.timestamp())
REGIONS = ("eu-central-1", "us-east-1", "ap-south-1")
TEAMS = ("search", "research-of-large-language-models", "vision", "")
MODELS = ("h100", "a100", "l4", "")


def figures(spend: float, number: int) -> dict[str, float]:
    return {
        "gpus": spend / 5, "spend_usd": spend, "allocated_usd": spend * 0.8, "unallocated_usd": spend * 0.2,
        "idle_usd": spend * 0.1, "parked_usd": spend * 0.05, "at_risk_usd": spend * 0.3, "unbounded": number % 3,
        "unbounded_usd": 700.0, "deny": number, "warn": 3 * number,
    }  # fmt: skip


def uses(allocated: float, usd: float | None) -> dict[str, float | None]:
    parts = {"busy": 0.4, "under_used": 0.1, "parked": 0.1, "idle": 0.2, "doubtful": 0.05, "unknown": 0.15}
    return {
        "allocated": allocated, **{use: allocated * part for use, part in parts.items()}, "usd": usd, "idle_usd": usd,
        "parked_usd": usd,
    }  # fmt: skip


def report() -> FleetReport:
    """Return a report with rows in all sections."""
    # The spend of clusters 9 and 10 differs from the order of the texts.
    clusters = [
        ClusterRow(cluster=f"gpu-{number}", region=REGIONS[number % 3], run_id="r", at=AT, gpugate="0.1.0", policy_hash="8c1f00aa93b2",
                   policy_mode="as-is", coverage=1.0, use_coverage=0.9, **figures(5000.0 / number, number))
        for number in range(1, 13)
    ]  # fmt: skip
    return FleetReport(
        gpugate="0.1.0", time=NOW, sources=("s3://audits/gpugate",), engine="duckdb", days=30,
        totals=Totals(clusters=12, without_cost=1, coverage=0.97, **figures(15000.0, 78)),
        clusters=tuple(clusters),
        regions=tuple(GroupRow(name=name, clusters=4, **figures(5000.0 - n, n)) for n, name in enumerate(REGIONS)),
        teams=tuple(GroupRow(name=name, clusters=4, **figures(3000.0 - n, n)) for n, name in enumerate(TEAMS)),
        policies=tuple(GroupRow(name=f"nodepools/policy-{n}", clusters=4, **figures(100.0 - n, n)) for n in range(5)),
        gpu_models=tuple(GpuModel(model=name, clusters=9, **uses(1000.5 / n, 40.0)) for n, name in enumerate(MODELS, 1)),
        gpu_teams=tuple(GpuTeam(team=team, model=model, clusters=2, **uses(100.0, None)) for team in TEAMS for model in MODELS),
        gpu_clusters=tuple(GpuCluster(cluster=f"gpu-{n}", region=REGIONS[0], model="h100", **uses(8.0 * n, 9.0)) for n in range(12, 0, -1)),
        worst=tuple(
            WorstObject(cluster=f"gpu-{n}", kind="Deployment", namespace="team-research", name=f"inference-server-of-the-model-{n}",
                        team="research-of-large-language-models", action="deny" if n % 2 else "allow", gpus=16.0, usd=110.0,
                        loss_usd=110.0 - n, idle_or_parked_usd=50.0, findings=2, policy="pods/missing-gpu-toleration" if n % 2 else "")
            for n in range(1, 21)
        ),
        regressions=(Regression(cluster="gpu-3", figure="idle or parked, USD per hour", before=900.0, now=1100.0, change=200.0,
                                caveat="the policy file changed"),
                     Regression(cluster="gpu-4", figure="coverage, percent", before=100.0, now=64.0, change=-36.0, caveat="")),
        policy_regressions=(PolicyRegression(policy="pods/missing-gpu-limit", clusters=3, before=4, now=19, change=15),),
        silent=(SilentCluster(cluster="gpu-13", region="eu-central-1", at=AT - 400_000, spend_usd=None),),
        versions=(PolicyVersion(policy_hash="8c1f00aa93b2", gpugate="0.1.0", policy_mode="as-is", clusters=11, example="gpu-1"),
                  PolicyVersion(policy_hash="77d2b5c10e4f", gpugate="0.0.9", policy_mode="enforce", clusters=1, example="gpu-9")),
        expired=(ExpiredExemption(policies="pods/missing-cost-labels", kinds="Deployment", namespaces="research", names="*", owner="finance",
                                  reason="charged as one", expires=dt.date(2026, 10, 1), clusters=3, example="gpu-1"),),
        daily=tuple(Day(day=AT // 86_400 - n, clusters=12, spend_usd=15000.0 - 100 * n, idle_or_parked_usd=900.0, at_risk_usd=100.0,
                        deny=70 + n) for n in range(29, -1, -1)),
        faults=(Fault(cluster="gpu-5", fault="clock", runs=2, detail="7200"),),
        problems=("s3://audits-us/gpugate: no answer within 60 s: check the address and the network",),
    )  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet") / "fleet.html"
    path.write_text(render(report()), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Browser, file: Path, noticed: list[str]) -> Iterator[Callable[..., Page]]:
    contexts = []

    def open_page(width: int = 1400, scheme: str = "light", *, scripts: bool = True) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: noticed.append(message.text))
        page.on("pageerror", lambda error: noticed.append(str(error)))
        page.on("request", lambda request: noticed.append(request.url) if request.url != file.as_uri() else None)
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert noticed == []


def column(page: Page, section: str, index: int) -> list[str]:
    """The texts of a column, from top to bottom."""
    texts: list[str] = page.locator(f"#{section} tbody tr").evaluate_all(
        "(rows, index) => rows.map(row => row.cells[index].textContent)", index
    )
    return texts


def head(page: Page, section: str, text: str) -> Locator:
    return page.locator(f"#{section} th", has_text=text)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_fits(opened: Callable[..., Page], screenshots: Path, width: int, scheme: str) -> None:
    page = opened(width, scheme)
    page.screenshot(path=screenshots / f"fleet-{width}-{scheme}.png", full_page=True)

    # Wide tables scroll inside their own frame.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sections = page.locator("main > section")
    assert sections.count() == 16
    for section in sections.all():
        frame = section.bounding_box()
        assert frame is not None
        assert frame["x"] + frame["width"] <= width


@pytest.mark.parametrize(
    ("section", "name", "index"),
    [
        ("cluster", "Spend $ / hour", 2),
        ("gpus-by-cluster", "Allocated", 3),
        ("worst", "$ / hour", 3),
        ("drift", "Clusters", 3),
    ],
)
def test_numbers_are_sorted_by_their_value_and_back(
    opened: Callable[..., Page], section: str, name: str, index: int
) -> None:
    page = opened()
    button = head(page, section, name)
    values = [float(text.replace(",", "")) for text in column(page, section, index)]
    for order, is_down in (("descending", True), ("ascending", False), ("descending", True)):
        button.get_by_role("button").click()
        expect(button).to_have_attribute("aria-sort", order)
        found = [float(text.replace(",", "")) for text in column(page, section, index)]
        assert found == sorted(values, reverse=is_down)


def test_names_are_sorted_by_the_keyboard_with_numbers_in_their_order(opened: Callable[..., Page]) -> None:
    page = opened()
    button = head(page, "cluster", "Cluster").get_by_role("button")
    button.focus()
    page.keyboard.press("Enter")
    assert column(page, "cluster", 0) == [f"gpu-{number}" for number in range(1, 13)]
    page.keyboard.press("Space")
    assert column(page, "cluster", 0) == [f"gpu-{number}" for number in range(12, 0, -1)]
    expect(head(page, "cluster", "Cluster")).to_have_attribute("aria-sort", "descending")


def test_one_column_of_a_table_is_the_sorted_one(opened: Callable[..., Page]) -> None:
    page = opened()
    for name in ("Region", "Spend $ / hour"):
        head(page, "region", name).get_by_role("button").click()
    assert page.locator("#region [aria-sort]").all_text_contents() == ["Spend $ / hour"]
    assert page.locator("[aria-sort]").count() == 1


def test_a_column_of_bars_is_not_sorted(opened: Callable[..., Page]) -> None:
    page = opened()
    assert head(page, "cluster", "Parts").get_by_role("button").count() == 0


def test_without_scripts_the_page_is_complete(opened: Callable[..., Page]) -> None:
    page = opened(scripts=False)
    assert column(page, "cluster", 0) == [f"gpu-{number}" for number in range(1, 13)]
    assert page.get_by_role("button").count() == 0
