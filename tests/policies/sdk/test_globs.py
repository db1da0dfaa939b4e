from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.sdk.formats import matches, overlap

TEXTS = ["".join(letters) for length in range(6) for letters in product("ab", repeat=length)]
patterns = st.text("ab*", max_size=5)


def fits(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


@given(pattern=st.text("ab*.[", max_size=8), text=st.text("ab.[", max_size=8))
def test_a_pattern_matches_as_the_regular_expression_does(pattern: str, text: str) -> None:
    assert matches(pattern, text) is fits(pattern, text)


@given(one=patterns, other=patterns)
def test_two_patterns_overlap_when_some_text_fits_both(one: str, other: str) -> None:
    # The shortest text that fits both is no longer than both together; five letters hold for these alphabets.
    letters = one.replace("*", "") + other.replace("*", "")
    candidates = {*TEXTS, *(text + more for text in TEXTS for more in TEXTS if len(letters) > 5)}
    assert overlap(one, other) is any(fits(one, text) and fits(other, text) for text in candidates)


@pytest.mark.parametrize(
    ("one", "other", "overlapping"),
    [
        ("ml-*", "ml-training", True),
        ("ml-*", "*-training", True),
        ("ml-*", "inference-*", False),
        ("research-*", "research-*", True),
        ("a*b", "*c", False),
        ("", "*", True),
        ("a", "", False),
    ],
)
def test_patterns_overlap(one: str, other: str, *, overlapping: bool) -> None:
    assert overlap(one, other) is overlapping
    assert overlap(other, one) is overlapping


def test_long_patterns_are_no_problem() -> None:
    assert overlap("a" * 3000 + "*", "*" + "a" * 3000)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param("*a" * 100_000, "a" * 99_999, id="one-letter-too-few"),
        pytest.param("*a" * 30 + "*b", "a" * 1_000_000, id="nothing-to-end-with"),
        pytest.param("*" + "a" * 500 + "b*c", "a" * 1_000_000, id="nearly-everywhere"),
        pytest.param("*" * 100_000 + "a", "b" * 100_000, id="stars-alone"),
    ],
)
def test_hostile_patterns_are_matched_in_linear_time(pattern: str, text: str) -> None:
    assert not matches(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "fit"),
    [
        ("a*a", "a", False),
        ("ab*ba", "aba", False),
        ("ab*ba", "abba", True),
        ("*aa*aa*", "aaa", False),
        ("*aa*aa*", "aaaa", True),
        ("a*bc*c", "abcc", True),
        ("a*bc*c", "abc", False),
        ("*", "", True),
        ("", "", True),
    ],
)
def test_no_character_counts_twice(pattern: str, text: str, fit: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert matches(pattern, text) is fit
