"""What is found in a site that was built."""

from __future__ import annotations

import runpy
from typing import TYPE_CHECKING

import pytest
from documentation.blocks import ROOT

if TYPE_CHECKING:
    from pathlib import Path

# A program that is run by its path, in an environment without what the tests need.
PROGRAM = runpy.run_path(str(ROOT / "docs" / "site" / "check_links.py"))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "other").mkdir()
    (tmp_path / "style.css").write_text("")
    (tmp_path / "other" / "index.html").write_text('<h1 id="first">First</h1>')
    return tmp_path


@pytest.mark.parametrize(
    ("page", "mistake"),
    [
        ('<a href="other/index.html#first">', ""),
        ('<a href="other/">', ""),
        ('<a id="here" href="#here">', ""),
        ('<a href="https://kubernetes.io/docs/">', ""),
        ('<link rel="stylesheet" href="style.css?v=1">', ""),
        ('<link rel="next" href="#">', ""),
        ('<img src="data:image/png;base64,aa">', ""),
        ('<a href="none.html">', "none.html: there is no such file"),
        ('<a href="other/index.html#second">', "other/index.html#second: there is no such heading"),
        ('<a href="#second">', "#second: there is no such heading"),
        ('<a href="https://kubernetes">', "https://kubernetes: is no address of a site"),
        ('<a href="javascript:alert(1)">', "javascript:alert(1): is neither a page of this site nor a web address"),
        ('<a href="//example.com/a">', "//example.com/a: is neither a page of this site nor a web address"),
        (
            '<script src="https://cdn.example.com/a.js">',
            "https://cdn.example.com/a.js: would be fetched from another host",
        ),
        (
            '<link rel="stylesheet" href="//fonts.example.com">',
            "//fonts.example.com: would be fetched from another host",
        ),
        ('<img src="none.png">', "none.png: there is no such file"),
    ],
)
def test_links_lead_somewhere_and_nothing_is_fetched_from_elsewhere(site: Path, page: str, mistake: str) -> None:
    (site / "index.html").write_text(page)
    assert list(PROGRAM["mistakes"](site)) == ([f"index.html: {mistake}"] if mistake else [])


def test_a_folder_without_pages_is_a_mistake(tmp_path: Path) -> None:
    assert list(PROGRAM["mistakes"](tmp_path)) == [f"{tmp_path}: there is no page"]
