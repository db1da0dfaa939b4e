"""`denied(review, code, says)` and `refused(body, code, says)`: the two ways to turn a body down, on both paths."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Json: TypeAlias = dict[str, Any]


@pytest.fixture(scope="session")
def denied(ask: Callable[..., Json]) -> Callable[..., None]:
    def check(sent: Json | bytes, code: int, says: str, **expected: str) -> None:
        answer = ask("/validate", sent, **expected)
        assert (answer["allowed"], answer.get("status", {}).get("code")) == (False, code)
        assert re.search(says, answer["status"]["message"]) is not None, answer["status"]["message"]
        answer = ask("/mutate", sent, **expected)
        assert (answer["allowed"], "patch" in answer, len(answer.get("warnings", []))) == (True, False, 1)

    return check


@pytest.fixture(scope="session")
def refused(webhook: Any) -> Callable[[bytes, int, str], None]:
    def check(body: bytes, code: int, says: str) -> None:
        for path in ("/mutate", "/validate"):
            found, headers, text = webhook.request("POST", path, body)
            status = json.loads(text)
            assert (found, headers["Content-Type"], headers["Connection"]) == (code, "application/json", "close")
            assert (status["kind"], status["apiVersion"], status["code"]) == ("Status", "v1", code)
            assert re.search(says, status["message"]) is not None, status["message"]

    return check
