"""The picture of the audit's page in README.md shows what the page says of the dump in `tests/fixtures`."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from documentation.blocks import ROOT
from recorded_metrics import recorded_metrics

from gpugate.webhook.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

_PICTURE = ROOT / "docs" / "audit-page.svg"
_NO_TEXT = re.compile(r"(?s)<(script|style)\b.*?</\1>|<[^>]+>")


def test_every_text_of_the_picture_is_on_the_page(tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    dump = ROOT / "tests" / "fixtures" / "dumps" / "ml-platform"

    with recorded_metrics() as url:
        assert main(["audit", "--from", str(dump), "--prometheus", url, "-o", f"html={page}"]) == 0

    said = " ".join(html.unescape(_NO_TEXT.sub(" ", page.read_text())).split())
    shown = ["".join(each.itertext()) for each in ET.parse(_PICTURE).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314 -- our own file
    assert [text for text in shown if text not in said] == []
    assert len(shown) > 20
