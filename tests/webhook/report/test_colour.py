from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.report.plain import Paint, wanted

if TYPE_CHECKING:
    from gpugate.webhook.report.plain import When

CASES: dict[str, tuple[When, bool, dict[str, str], bool]] = {
    "a terminal": ("auto", True, {}, True),
    "no terminal": ("auto", False, {}, False),
    "NO_COLOR": ("auto", True, {"NO_COLOR": "1"}, False),
    "an empty NO_COLOR": ("auto", True, {"NO_COLOR": ""}, True),
    "FORCE_COLOR": ("auto", False, {"FORCE_COLOR": "1"}, True),
    "FORCE_COLOR=0": ("auto", False, {"FORCE_COLOR": "0"}, False),
    "NO_COLOR beats FORCE_COLOR": ("auto", True, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    "a dumb terminal": ("auto", True, {"TERM": "dumb"}, False),
    "always": ("always", False, {"NO_COLOR": "1"}, True),
    "never": ("never", True, {"FORCE_COLOR": "1"}, False),
}


@pytest.mark.parametrize(("when", "is_terminal", "environment", "expected"), CASES.values(), ids=CASES)
def test_when_colours_are_wanted(
    when: When,
    is_terminal: bool,  # noqa: FBT001 -- a table's column
    environment: dict[str, str],
    expected: bool,  # noqa: FBT001 -- a table's column
) -> None:
    assert wanted(when, is_terminal=is_terminal, environment=environment) is expected


def test_paint_that_is_off_leaves_text_alone() -> None:
    assert Paint()("text", 31) == "text"
