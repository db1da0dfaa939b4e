from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.engine.config import ConfigError
from gpugate.webhook.testing.cases import combinations, named, substituted


@pytest.mark.parametrize(
    ("parametrize", "made"),
    [
        ({"a": [1, 2], "b": ["x"]}, [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}]),
        ([{"a": 1}, {"a": 2, "b": 3}], [{"a": 1}, {"a": 2, "b": 3}]),
    ],
)
def test_values_are_combined_or_given_together(parametrize: Any, made: Any) -> None:
    assert combinations(parametrize) == made


@pytest.mark.parametrize(
    "parametrize", [[], [1], "a", {"a": []}, {"a": 1}, {"a": [1] * 100, "b": [1] * 100}, {"false": [1]}, [{"a b": 1}]]
)
def test_what_makes_no_tests_or_too_many_is_refused(parametrize: Any) -> None:
    with pytest.raises(ConfigError):
        combinations(parametrize)


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ("{n}", 3),
        ("n={n}", "n=3"),
        ({"{t}": ["{n}", {"a": "{t}"}]}, {"x": [3, {"a": "x"}]}),
        ("{b} {none}", "true null"),
        ("{other} {} {n }", "{other} {} {n }"),
        (7, 7),
    ],
)
def test_a_parameter_takes_its_place_anywhere_and_other_braces_stay(value: Any, made: Any) -> None:
    assert substituted(value, {"n": 3, "t": "x", "b": True, "none": None}) == made


@pytest.mark.parametrize(("name", "made"), [("of {n}", "of 3"), ("plain", "plain [3]")])
def test_tests_of_one_are_told_apart_by_their_values(name: str, made: str) -> None:
    assert named(name, {"n": 3}) == made
