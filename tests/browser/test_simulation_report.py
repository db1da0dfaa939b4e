"""The page of `gpugate simulate`, which has no script, in a real browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from simulate.cluster_objects import OBJECTS

from gpugate.webhook.simulate.command import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies:\n  pods/wildcard-toleration: "
SECTIONS = ("overview", "denied", "policies", "nodes", "runs", "scale-ups", "exemptions", "gaps", "method")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulation")
    (folder / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    for name, mode in (("current", "warn"), ("candidate", "enforce")):
        (folder / f"{name}.yaml").write_text(f"{HEAD}{{mode: {mode}}}\n")
    files = ("--current", str(folder / "current.yaml"), "--candidate", str(folder / "candidate.yaml"))
    page = folder / "simulation.html"
    assert main([*files, "--from", str(folder / "dump.json"), "-o", f"html={page}"]) == 0
    return page


@pytest.fixture
def opened(browser: Browser, file: Path, noticed: list[str]) -> Iterator[Callable[[int, str], Page]]:
    """Open the page with a width and a colour scheme, in a browser that runs no script."""
    contexts = []

    def open_page(width: int, scheme: str) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=False
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: noticed.append(message.text))
        page.on("request", lambda request: noticed.append(request.url))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_fits_and_loads_nothing(
    opened: Callable[[int, str], Page], file: Path, noticed: list[str], screenshots: Path, width: int, scheme: str
) -> None:
    page = opened(width, scheme)
    page.screenshot(path=screenshots / f"simulation-{width}-{scheme}.png", full_page=True)

    box = page.locator("body").bounding_box()
    assert box is not None
    assert box["width"] <= width
    # Wide tables scroll inside their own frame.
    for section in SECTIONS:
        frame = page.locator(f"section#{section}").bounding_box()
        assert frame is not None, section
        assert frame["x"] + frame["width"] <= width, section
    assert noticed == [file.as_uri()]


def test_an_owner_opens_without_a_script(opened: Callable[[int, str], Page]) -> None:
    page = opened(1400, "light")
    owner = page.locator("#denied details").first

    expect(owner.locator("li p").first).to_be_hidden()
    owner.locator("summary").click()
    expect(owner.locator("li p").first).to_be_visible()
