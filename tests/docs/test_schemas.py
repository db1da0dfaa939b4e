"""The page on formats names every JSON schema that is published."""

from __future__ import annotations

from documentation.blocks import ROOT


def test_every_schema_is_on_the_page_on_formats() -> None:
    page = (ROOT / "docs" / "formats.md").read_text()
    published = sorted((ROOT / "docs" / "schemas").glob("*.json"))
    assert [path.name for path in published if f"(schemas/{path.name})" not in page] == []
