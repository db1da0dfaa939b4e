from __future__ import annotations

import json
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.engine.json_text import MAX_DEPTH, cut, has_more_values_than, is_deeper_than, read_json

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


def shallow(value: Any, levels: int) -> Any:
    """Return a value whose objects and lists below some levels are empty."""
    if isinstance(value, dict):
        return {key: shallow(member, levels - 1) for key, member in value.items()} if levels > 0 else {}
    if isinstance(value, list):
        return [shallow(element, levels - 1) for element in value] if levels > 0 else []
    return value


@given(values, st.booleans(), st.integers(0, 6))
def test_what_is_too_deep_is_empty(value: Any, ascii_only: bool, levels: int) -> None:  # noqa: FBT001 -- drawn
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert json.loads(cut(text, levels)) == shallow(value, levels)


PARSERS = [
    pytest.param(orjson.loads, id="orjson"),
    pytest.param(msgspec.json.Decoder(dict[str, Any]).decode, id="msgspec"),
]
# The API server accepts as many levels.
DEEPEST = 9_990


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("levels", [MAX_DEPTH, 1_000, 1_030, DEEPEST])
@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"f:a":', b"}")])
def test_depth_is_no_obstacle(parse: Any, levels: int, begin: bytes, end: bytes) -> None:
    deep = b"null".join((begin * levels, end * levels))
    value = read_json(parse, b'{"before": [{"a": 1}], "deep": ' + deep + b', "after": "}"}')

    assert depth(value) == MAX_DEPTH + 1
    assert (value["before"], value["after"]) == ([{"a": 1}], "}")


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[" * DEEPEST, id="not-closed"),
        pytest.param(b"]" * DEEPEST, id="not-opened"),
        pytest.param(b"[" * DEEPEST + b"}" * DEEPEST, id="closed-wrongly"),
        pytest.param(b'{"' * DEEPEST, id="quotes"),
        pytest.param(b'{"a":' * DEEPEST + b'"\\', id="ends-in-an-escape"),
    ],
)
def test_a_deep_text_that_is_not_json_has_the_error_of_its_parser(parse: Any, text: bytes) -> None:
    with pytest.raises((orjson.JSONDecodeError, msgspec.DecodeError)):
        read_json(parse, text)
