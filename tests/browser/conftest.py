"""The audit's HTML report in a real browser: `make browser`.

`opened(...)` opens a report and returns the page; every console message, script error and request is in `noticed`, and
must stay out of it. `screenshots` is where pictures go for people to look at.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import audit_reports
import pytest
from msgspec.structs import replace

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.audit.comparison import Changed, Comparison
from gpugate.webhook.audit.formats.html import render
from gpugate.webhook.audit.formats.presentation import Presentation
from gpugate.webhook.audit.history import Run
from gpugate.webhook.audit.model import DeviceUse, OwnerUse, Spend, Usage, Use, Used
from gpugate.webhook.audit.trend import Trend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from gpugate.webhook.audit.model import AuditReport

FOLDER = Path(__file__).parent
SCREENSHOTS = FOLDER.parents[1] / "build" / "audit-report"


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    # They need what only `make browser` installs, and run where the command line names this folder.
    named = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    return None if any(path.resolve().is_relative_to(FOLDER) for path in named) else True


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- not there where this file is only looked at

    # Chromium's sandbox does not start for root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return SCREENSHOTS


@pytest.fixture(scope="session")
def audit() -> AuditReport:
    return audit_reports.audit()


@pytest.fixture(scope="session")
def measured() -> AuditReport:
    """An audit with the use of GPUs."""
    report = audit_reports.audit(30)
    owners = [owner for owner in report.audited if owner.allocated][:4]
    device = DeviceUse(
        "ml/a-0", "gpu-1", "GPU-0", "NVIDIA H100 80GB HBM3", Use.IDLE, "engine active at most 0.0%", 1.0, 6.88
    )
    query = 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=~"GPU-0aa1b2c3-4d5e-6f70-8a9b-0c1d2e3f4a5b"}'
    changed = {
        owner.object: replace(owner, gpu_use=OwnerUse((Used(use, 2.0, 13.76),), (replace(device, use=use),), query))
        for owner, use in zip(owners, (Use.IDLE, Use.PARKED, Use.UNDER_USED, Use.DOUBTFUL), strict=True)
    }
    assert report.cost
    used = tuple(Used(use, 2.0, 13.76) for use in Use)
    spending = tuple(Spend("team", name, 8.0, 55.04, used) for name in ("search", "research", ""))
    cost = replace(report.cost, spend=182.56, unallocated=27.52, used=used, spending=spending)
    audited = tuple(changed.get(owner.object, owner) for owner in report.audited)
    return replace(report, audited=audited, cost=cost, usage=Usage("http://prometheus:9090", 86400, 10, 0.9))


@pytest.fixture(scope="session")
def large() -> AuditReport:
    return audit_reports.audit(10_000)


@pytest.fixture(scope="session")
def scattered(large: AuditReport) -> AuditReport:
    return audit_reports.all_different(large, namespaces=True)


@pytest.fixture(scope="session")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[AuditReport], Path]:
    written: dict[int, Path] = {}

    def write(report: AuditReport) -> Path:
        if id(report) not in written:
            first = next(each for each in report.audited if each.findings)
            changed = Changed(first.object, first.findings[0])
            comparison = Comparison(report.time, (changed,), (changed, changed), 40)
            now = Run.of(report)
            runs = [_before(now, days) for days in range(30, 0, -1)]
            shown = Presentation(
                policies=CATALOG,
                comparison=comparison,
                trend=Trend(tuple(runs), now),
                idle_budget=20.0,
                rbac="kind: ClusterRole\n",
                seconds=3.4,
            )
            written[id(report)] = tmp_path_factory.mktemp("report") / "audit.html"
            written[id(report)].write_text(render(report, shown), encoding="utf-8")
        return written[id(report)]

    return write


def _before(now: Run, days: int) -> Run:
    """Return a record of some days before, when less was spent and more would have been denied."""
    usd = {name: usd * (1 - days / 60) for name, usd in now.usd_per_hour.items()}
    objects = replace(now.objects, deny=now.objects.deny + days // 5)
    return replace(now, time=now.time - dt.timedelta(days=days), usd_per_hour=usd, objects=objects, namespaces={})


@pytest.fixture
def noticed() -> list[str]:
    return []


@pytest.fixture
def opened(
    browser: Browser, report_file: Callable[[AuditReport], Path], noticed: list[str]
) -> Iterator[Callable[..., Page]]:
    with ExitStack() as contexts:

        def open_report(report: AuditReport, *, scheme: str = "light", scripts: bool = True, width: int = 1280) -> Page:
            context = browser.new_context(
                color_scheme=scheme,
                java_script_enabled=scripts,
                viewport={"width": width, "height": 1000},
                permissions=["clipboard-read", "clipboard-write"],
            )
            contexts.callback(context.close)
            page = context.new_page()
            uri = report_file(report).as_uri()
            page.on("console", lambda message: noticed.append(f"console: {message.text}"))
            page.on("pageerror", lambda error: noticed.append(f"error: {error}"))
            page.on("request", lambda request: noticed.append(request.url) if request.url != uri else None)
            page.goto(uri)
            return page

        yield open_report
    assert noticed == []
