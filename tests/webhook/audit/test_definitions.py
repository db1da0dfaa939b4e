"""What figures mean is said once, and the formats and the documentation say it in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpugate.webhook.audit.words import COST_DEFINITIONS, DEFINITIONS

DOCUMENT = (Path(__file__).parents[3] / "docs" / "audit.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("figure", COST_DEFINITIONS)
def test_the_appendix_has_the_definition(figure: str) -> None:
    assert DEFINITIONS[figure] == COST_DEFINITIONS[figure]


@pytest.mark.parametrize("figure", DEFINITIONS)
def test_the_documentation_has_the_definition(figure: str) -> None:
    assert f"| {figure} | {DEFINITIONS[figure]} |" in DOCUMENT
