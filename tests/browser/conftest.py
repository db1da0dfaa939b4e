"""The audit's HTML report in a real browser: `make browser`.

`opened(...)` opens a report and returns the page; every console message, script error and request is in `noticed`, and
must stay out of it. `screenshots` is where pictures go for people to look at.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import audit_reports
import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.audit.comparison import Changed, Comparison
from gpugate.webhook.audit.formats.html import render
from gpugate.webhook.audit.formats.presentation import Presentation

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
            shown = Presentation(policies=CATALOG, comparison=comparison, rbac="kind: ClusterRole\n", seconds=3.4)
            written[id(report)] = tmp_path_factory.mktemp("report") / "audit.html"
            written[id(report)].write_text(render(report, shown), encoding="utf-8")
        return written[id(report)]

    return write


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
