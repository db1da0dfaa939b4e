from __future__ import annotations

from typing import Any

import pytest
from api_server import patch_conduct
from api_server.errors import ConductError

DOCUMENT: dict[str, Any] = {"a": {"b": 1}, "l": [1, 2], "n": None, "t/t": {}}


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([{"op": "add", "path": "/a/c", "value": 1}], id="add"),
        pytest.param([{"op": "add", "path": "/l/2", "value": 1}], id="add-at-the-end"),
        pytest.param([{"op": "add", "path": "/l/-", "value": 1}], id="append"),
        pytest.param([{"op": "replace", "path": "/l/1", "value": 1}], id="replace"),
        pytest.param([{"op": "remove", "path": "/n"}], id="remove"),
        pytest.param([{"op": "add", "path": "/t~1t/x~0", "value": 1}], id="escapes"),
        pytest.param(
            [{"op": "add", "path": "/x", "value": {}}, {"op": "add", "path": "/x/y", "value": 1}],
            id="parent-made-first",
        ),
    ],
)
def test_lets_through(operations: list[dict[str, Any]]) -> None:
    patch_conduct.check(DOCUMENT, operations)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        pytest.param({"op": "test", "path": "/a", "value": {}}, "only add", id="test"),
        pytest.param({"op": "move", "path": "/a", "from": "/l"}, "only add", id="move"),
        pytest.param({"op": "Add", "path": "/a", "value": 1}, "only add", id="upper-case"),
        pytest.param({"op": "add", "path": "/a"}, "exactly", id="add-without-a-value"),
        pytest.param({"op": "remove", "path": "/a", "value": 1}, "exactly", id="remove-with-a-value"),
        pytest.param({"op": "add", "path": "/x", "value": 1, "y": 1}, "exactly", id="more-members"),
        pytest.param({"op": "replace", "path": "", "value": {}}, "canonical", id="root"),
        pytest.param({"op": "add", "path": "a/x", "value": 1}, "canonical", id="relative"),
        pytest.param({"op": "add", "path": "/~2", "value": 1}, "canonical", id="bad-escape"),
        pytest.param({"op": "add", "path": "/x/y", "value": 1}, "parent does not", id="no-parent"),
        pytest.param({"op": "add", "path": "/l/9/y", "value": 1}, "parent does not", id="no-parent-in-a-list"),
        pytest.param({"op": "add", "path": "/n/y", "value": 1}, "neither", id="parent-is-null"),
        pytest.param({"op": "replace", "path": "/x", "value": 1}, "does not exist", id="replace-what-is-missing"),
        pytest.param({"op": "remove", "path": "/x"}, "does not exist", id="remove-what-is-missing"),
        pytest.param({"op": "add", "path": "/l/01", "value": 1}, "canonical index", id="leading-zero"),
        pytest.param({"op": "remove", "path": "/l/-1"}, "canonical index", id="from-the-end"),
        pytest.param({"op": "replace", "path": "/l/-", "value": 1}, "canonical index", id="replace-at-the-dash"),
        pytest.param({"op": "add", "path": "/l/3", "value": 1}, "no such index", id="past-the-end"),
    ],
)
def test_refuses(operation: dict[str, Any], why: str) -> None:
    with pytest.raises(ConductError, match=why):
        patch_conduct.check(DOCUMENT, [operation])
