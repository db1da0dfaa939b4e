from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpugate.policies.engine.caught_error import described


def look_up(key: str) -> str:
    found: dict[str, str] = {}
    return found[key]


def evaluate(key: str) -> str:
    return look_up(key)


def fails(key: str) -> KeyError:
    try:
        evaluate(key)
    except KeyError as error:
        return error
    raise AssertionError


def test_the_line_that_broke_is_named_and_nothing_of_the_object() -> None:
    line = next(
        number for number, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "found[key]" in text
    )
    assert described(fails("a secret")) == f"KeyError at test_caught_error.py:{line}"


def test_it_is_the_last_file_that_is_named() -> None:
    with pytest.raises(json.JSONDecodeError) as raised:
        json.loads("a secret")
    assert described(raised.value).startswith("JSONDecodeError at decoder.py:")


def test_an_exception_that_was_not_raised_has_no_line() -> None:
    assert described(ValueError("a secret")) == "ValueError"
