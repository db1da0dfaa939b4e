from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.webhook.admission.review import has_more_values_than, is_deeper_than

texts = st.text(alphabet='{}[],:"\\ \n\u00e9a', max_size=12)
values = st.recursive(
    texts | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=30,
)


def count(value: Any) -> int:
    """Count values; an empty object or list twice."""
    if not isinstance(value, dict | list):
        return 1
    members = list(value.values()) if isinstance(value, dict) else value
    return 1 + (sum(map(count, members)) if members else 1)


def depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)


@given(values, st.booleans(), st.integers(0, 60), st.integers(0, 300))
def test_values_are_counted_outside_strings(value: Any, ascii_only: bool, nodes: int, blanks: int) -> None:  # noqa: FBT001 -- drawn
    text = json.dumps(value, ensure_ascii=ascii_only).encode() + b" " * blanks
    assert has_more_values_than(text, nodes) is (count(value) > nodes and len(text) > 2 * nodes)


@given(values, st.booleans(), st.integers(0, 6))
def test_depth_is_counted_outside_strings(value: Any, ascii_only: bool, levels: int) -> None:  # noqa: FBT001 -- drawn
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert is_deeper_than(text, levels) is (depth(value) > levels)


@pytest.mark.parametrize("levels", [1, 18, 19, 20, 21, 22, 200, 5000])
@pytest.mark.parametrize("wide", [1, 300])
def test_deep_and_wide(levels: int, wide: int) -> None:
    text = b"[" + b",".join([b"[" * (levels - 1) + b"]" * (levels - 1)] * wide) + b"]"
    assert (is_deeper_than(text, levels - 1), is_deeper_than(text, levels)) == (True, False)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        pytest.param(b"[1,2,3]", True, id="four"),
        pytest.param(b"[1,2]  ", False, id="three"),
        pytest.param(b'["a,b,c,d"]', False, id="commas-in-a-string"),
        pytest.param(rb'["a\",b,c,d"]', False, id="after-an-escaped-quote"),
        pytest.param(rb'["\\",2,3]', True, id="after-an-escaped-backslash"),
        pytest.param(rb'["\\\",2,3,4"]', False, id="after-both"),
        pytest.param(b'{"a,":",,,","b,":",,,"}', False, id="commas-in-names-and-values"),
        pytest.param(b'["",",",1]', True, id="an-empty-string"),
        pytest.param(b"[[[[[[[", True, id="no-json"),
        pytest.param(b'"' * 100, False, id="only-quotes"),
    ],
)
def test_more_than_three_values(text: bytes, more: bool) -> None:  # noqa: FBT001 -- a table's column
    assert has_more_values_than(text, 3) is more


HOSTILE = 2**20
FORMS = [
    pytest.param(b"{}," * HOSTILE, True, id="empty-objects"),
    pytest.param(b'["' + b'","' * HOSTILE + b'"]', True, id="strings"),
    pytest.param(b'["' + b"," * 3 * HOSTILE + b'"]', False, id="one-string-of-commas"),
    pytest.param(b'["' + rb"\"," * HOSTILE + b'"]', False, id="one-string-of-escaped-quotes"),
    pytest.param(b'["' + rb"\\" * 2 * HOSTILE + b'"]', False, id="one-string-of-backslashes"),
    pytest.param(b"[" * 3 * HOSTILE, True, id="opened-and-never-closed"),
    pytest.param(b'"' * 3 * HOSTILE, False, id="quotes"),
    pytest.param(b'" ' * 2 * HOSTILE, False, id="quotes-and-blanks"),
]


@pytest.mark.parametrize(("text", "more"), FORMS)
def test_hostile_texts_are_rejected_without_parsing(text: bytes, more: bool) -> None:  # noqa: FBT001 -- a table's column
    assert has_more_values_than(text, 500_000) is more
