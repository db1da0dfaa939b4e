"""The page on annotations and labels names every one that the code knows, and no other."""

from __future__ import annotations

import re

from documentation.blocks import ROOT

_NAME = re.compile(r"gpugate\.dev/(?P<name>[a-z][a-z-]*[a-z])")
# What documents call themselves, and their versions.
_DOCUMENTS = {
    *("audit", "audit-history", "baseline", "check", "doctor", "review", "shadow", "simulation", "status", "test"),
    *("audit-clusters", "audit-tables", "fleet-report", "record", "test-report", "why"),
}
# The code makes these out of parts.
_DISABLED = {"disabled-at", "disabled-by", "disabled-reason"}


def test_the_page_names_what_the_code_knows() -> None:
    sources = [path for folder in ("certs", "policies", "webhook") for path in (ROOT / folder).rglob("*.py")]
    sources += (ROOT / "charts").rglob("templates/*.yaml")
    known = {name for path in sources for name in _NAME.findall(path.read_text())} - _DOCUMENTS
    page = (ROOT / "docs" / "annotations-and-labels.md").read_text()
    assert set(_NAME.findall(page)) == {name for name in known if not name.startswith("disabled")} | _DISABLED
