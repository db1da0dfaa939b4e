"""Names and messages come from whoever may write an object; no format lets them be more than text."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.audit.formats.names import FORMATS, render

if TYPE_CHECKING:
    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_invisible_reaches_the_reader(name: str, hostile: AuditReport, presentation: Presentation) -> None:
    text = render(name, hostile, presentation).replace("\r\n", "\n")

    assert {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Co", "Zl", "Zp"}} <= {"\n"} | _ESCAPED.get(
        name, set()
    )


# JSON strings hold what was found, as programs need it; msgspec escapes controls, and nothing prints it to a terminal.
_ESCAPED = {"json": {"\u202e", "\u2066"}, "html": {"\u202e", "\u2066"}}


@pytest.mark.parametrize("name", ["text", "wide", "markdown", "junit"])
def test_no_line_is_a_workflow_command(name: str, hostile: AuditReport, presentation: Presentation) -> None:
    lines = render(name, hostile, presentation).split("\n")

    assert [line for line in lines if line.lstrip().startswith("::")] == []


@pytest.mark.parametrize("name", FORMATS)
def test_a_text_ends_in_a_line_break(name: str, audit: AuditReport, presentation: Presentation) -> None:
    assert render(name, audit, presentation).endswith("\n")
