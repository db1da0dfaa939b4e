from __future__ import annotations

import json
from typing import Any

import pytest
from api_server import go_json
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param("<a & b>", rb'"\u003ca \u0026 b\u003e"', id="html"),
        pytest.param("\u2028\u2029", rb'"\u2028\u2029"', id="line-separators"),
        pytest.param("ü", '"ü"'.encode(), id="utf-8"),
        pytest.param("a\n\t\x01", rb'"a\n\t\u0001"', id="control"),
        pytest.param("a\ud800b", '"a\ufffdb"'.encode(), id="lone-surrogate"),
        pytest.param({"b": 1.0, "a": 0.5}, b'{"b":1,"a":0.5}', id="whole-float"),
        pytest.param([None, True], b"[null,true]", id="constants"),
    ],
)
def test_written(value: Any, written: bytes) -> None:
    assert go_json.encode(value) == written + b"\n"


def test_no_infinity() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        go_json.encode(float("inf"))


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(), max_size=5))
def test_reads_back_as_it_was(value: Any) -> None:
    assert json.loads(go_json.encode(value)) == value
