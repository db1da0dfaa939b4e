"""Values of cost labels that name no one to pay, and keys that are nearly the configured one."""

from __future__ import annotations

import pytest

from gpugate.policies.sdk.cost_labels import fault, lookalike

ILLEGAL = "is not a valid label value (at most 63 letters, digits, dots, dashes and underscores)"
FORM = 'is "{}", which does not match cc-#### or proj-* (# is a digit, * anything)'


@pytest.mark.parametrize(
    ("value", "forms", "said"),
    [
        ("cc-1234", ("cc-####", "proj-*"), ""),
        ("proj-a", ("cc-####", "proj-*"), ""),
        ("anything", (), ""),
        ("cc-123", ("cc-####", "proj-*"), FORM.format("cc-123")),
        ("", (), "is empty"),
        ("  ", (), "is empty"),
        ("todo", (), 'has the placeholder "todo"'),
        ("ToDo", ("cc-####",), 'has the placeholder "ToDo"'),
        ("a" * 63, (), ""),
        ("a" * 64, (), ILLEGAL),
        ("a b", ("a*",), ILLEGAL),
        ("-a", (), ILLEGAL),
        ("a.", (), ILLEGAL),
        ("A.b_c-9", (), ""),
    ],
)
def test_a_value_has_at_most_one_fault(value: str, forms: tuple[str, ...], said: str) -> None:
    assert fault(value, ("TODO", "n/a"), forms) == said


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (("CostCenter",), "CostCenter"),
        (("team", "cost_center"), "cost_center"),
        (("cost.center", "cost/center"), "cost.center"),
        # The key itself is no other key.
        (("cost-center",), None),
        (("cost-center", "COST-CENTER"), "COST-CENTER"),
        (("cost-centre", "team", ""), None),
        ((), None),
    ],
)
def test_a_key_that_differs_in_case_or_separators_looks_alike(labels: tuple[str, ...], found: str | None) -> None:
    assert lookalike("cost-center", labels) == found
