"""Captured reviews, changed at random: each is answered, by a review with its uid or by a 4xx Status."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REVIEWS = sorted((Path(__file__).parents[2] / "fixtures" / "reviews").glob("*.json"))
# A key with this before it is written as the key itself, a second time.
AGAIN = "AGAIN:"
# A string of this is written as so many lists, one in the other.
BURIED = re.compile(r'"BURIED:([0-9]+)"')
HOSTILE = ["", "\x00", "a\r\nb", "\x1b[31m\u202e", "__class__", "../..", "\uff19", "1e999", "-1", "true", "x" * 100_000]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(HOSTILE[:8]), inner, max_size=3)
)
DEPTHS = st.sampled_from([10, 150, 198, 205, 1100])


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every object or list with a key or index in it."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield value, key
        yield from places(member)


def text_of(review: Any) -> str:
    """Write a review, with what was marked in it said again and buried."""
    text = json.dumps(review).replace(f'"{AGAIN}', '"')
    return BURIED.sub(lambda found: "[" * int(found[1]) + "]" * int(found[1]), text)


def change(data: st.DataObject, review: Any) -> None:
    """Drop, replace, wrap, repeat or bury one member."""
    every = list(places(review))
    if not every:
        return
    parent, key = data.draw(st.sampled_from(every))
    how = data.draw(st.sampled_from(["drop", "replace", "wrap", "again", "swap", "bury"]))
    if how == "drop":
        del parent[key]
    elif how == "replace":
        parent[key] = data.draw(VALUES)
    elif how == "wrap":
        parent[key] = data.draw(st.sampled_from([[parent[key]], {"a": parent[key]}, str(parent[key])]))
    elif how == "bury":
        parent[key] = f"BURIED:{data.draw(DEPTHS)}"
    elif how == "swap":
        other, other_key = data.draw(st.sampled_from(every))
        parent[key] = copy.deepcopy(other[other_key])
    elif isinstance(parent, dict):
        parent[f"{AGAIN}{key}"] = data.draw(VALUES)
    else:
        parent.append(copy.deepcopy(parent[key]))


def uid_of(body: bytes, review: Any) -> Any:
    """Return the uid that an answer must have: the last of a body that can be read, the first of one that cannot."""
    try:
        return orjson.loads(body)["request"]["uid"]
    except orjson.JSONDecodeError:
        return review["request"]["uid"]


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_answered(webhook: Any, read_answer: Callable[..., Any], data: st.DataObject) -> None:
    review = json.loads(data.draw(st.sampled_from(REVIEWS)).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        change(data, review)
    body = text_of(review).encode()
    body = body[: data.draw(st.sampled_from([len(body), len(body), len(body), 300, len(body) // 2]))]
    path = data.draw(st.sampled_from(["/mutate", "/validate"]))
    code, headers, text = webhook.request("POST", path, body)
    if code == 200:
        read_answer(path, text, uid_of(body, review))
    else:
        status = json.loads(text)
        assert (400 <= code < 500, status["code"], headers["Connection"]) == (True, code, "close")
