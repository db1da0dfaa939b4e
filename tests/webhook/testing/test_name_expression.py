from __future__ import annotations

import pytest

from gpugate.webhook.testing.name_expression import ExpressionError, name_expression

NAME = "pools.gpugate-test.yaml::a taint (NoSchedule) is added and kept"


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ("taint", True),
        ("TAINT", True),
        ("limit", False),
        ("not limit", True),
        ("taint and limit", False),
        ("taint or limit", True),
        ("limit or taint and not spot", True),
        ("(limit or taint) and spot", False),
        ("not (limit or spot)", True),
        ("is added", True),
        ("added is", False),
        ("'added and kept'", True),
        ('"(NoSchedule)"', True),
        ("pools.gpugate", True),
    ],
)
def test_it_chooses_names(expression: str, fits: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert name_expression(expression)(NAME) is fits


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "a text is missing at the end"),
        ("a and", "a text is missing at the end"),
        ("and a", "`and` stands where a text belongs"),
        ("(a", "a parenthesis is not closed"),
        ("a)", r"`\)` is not expected"),
        ("'a", "a quote is not closed"),
        ("(" * 300, "more than 200 words"),
    ],
)
def test_what_is_no_expression_is_refused(expression: str, says: str) -> None:
    with pytest.raises(ExpressionError, match=says):
        name_expression(expression)
