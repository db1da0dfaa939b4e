"""The inputs of a property are the same in each run, whatever else was imported."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PROFILE = """
from property_inputs import load_profile

def pytest_configure():
    load_profile()
"""
CONSTANTS = "NUMBERS = [90_071_992, 77_123_456]\nWORDS = ['a word of a module', 'another word of a module']\n"
PROPERTY = """
from hypothesis import given, settings, strategies as st

FILE = open("inputs", "w")

@settings(max_examples=300)
@given(st.integers(), st.text())
def test_property(number, text):
    FILE.write(ascii((number, text)) + "\\n")

def test_end():
    FILE.close()
"""


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def inputs(pytester: pytest.Pytester, *options: str, before: str = "") -> str:
    """Return the inputs of a property in a run of pytest, in which another module runs before it."""
    pytester.makepyfile(conftest=PROFILE, constants=CONSTANTS, test_1=before, test_2=PROPERTY)
    ran = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist", *options)
    ran.assert_outcomes(passed=2)
    return pytester.path.joinpath("inputs").read_text()


def test_only_a_run_that_explores_has_other_inputs(pytester: pytest.Pytester) -> None:
    usual = inputs(pytester)

    assert inputs(pytester, before="import constants") == usual
    assert inputs(pytester, "--hypothesis-profile=explore") != usual
