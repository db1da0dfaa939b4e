from __future__ import annotations

import pytest

from gpugate.policies.nodeclasses.missing_cost_tags import alike, fault

FORMS = {"CostCenter": ("CC-####", "PRJ-*")}
PLACEHOLDERS = ("TBD", "none", "-", "n/a")


@pytest.mark.parametrize("value", ["search", "검색", "R&D 2", "CC-1", "a-b", "nonexistent"])
def test_a_value_that_tells_something_is_good(value: str) -> None:
    assert fault("Team", value, FORMS, PLACEHOLDERS) == ""


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("", "has no value"),
        ("  \t", "has no value"),
        ("\u200b\u2060", "has no value"),
        ("\u3164", "has no value"),
        ("sea\u200brch", "has an invisible character in its value"),
        ("tbd", 'has the placeholder "tbd" as its value'),
        (" N/A ", 'has the placeholder "N/A" as its value'),
        ("${TEAM}", 'contains the template placeholder "${"'),
        ("{{ .Values.team }}", 'contains the template placeholder "{{"'),
        ("<your team>", 'contains the template placeholder "<"'),
    ],
)
def test_a_value_that_tells_nothing_is_named(value: str, wrong: str) -> None:
    assert fault("Team", value, FORMS, PLACEHOLDERS) == wrong


@pytest.mark.parametrize(("value", "good"), [("CC-1234", True), ("PRJ-x", True), ("CC-12", False), ("1234", False)])
def test_a_value_has_one_of_the_forms(value: str, good: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert (fault("CostCenter", value, FORMS, PLACEHOLDERS) == "") is good


@pytest.mark.parametrize(
    ("present", "found"),
    [
        ({"costcenter"}, "costcenter"),
        ({"cost-center"}, "cost-center"),
        ({"Cost Center"}, "Cost Center"),
        ({"Cost\u200bCenter"}, "Cost\u200bCenter"),
        ({"CostCentre"}, ""),
        ({"CostCenter"}, ""),
        (set(), ""),
    ],
)
def test_another_spelling_of_a_key_is_found(present: set[str], found: str) -> None:
    assert alike("CostCenter", present) == found
