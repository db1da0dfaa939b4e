from __future__ import annotations

import json
from fractions import Fraction

import pytest

from gpugate.policies.scaling._queries import number


@pytest.mark.parametrize("text", ["0", "70", "-1", "0.5", "1e3", "1.5E-3", " 10 "])
def test_json_numbers_are_read(text: str) -> None:
    found = number(text)
    assert found is not None
    assert float(found) == json.loads(text)


@pytest.mark.parametrize("text", ["", "70%", ".5", "1.", "+1", "010", "5m", "1_000", "0x10", "NaN", "ten", "1e999"])
def test_other_texts_are_not(text: str) -> None:
    assert number(text) is None


def test_they_are_exact() -> None:
    assert number("0.1") == Fraction(1, 10)
