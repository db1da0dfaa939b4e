"""`assert_verdict(review, says)`: the verdict on an object at both paths. `says` None: it is allowed; else the reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def assert_verdict(ask: Callable[..., Any]) -> Callable[[Any, str | None], Any]:
    def check(sent: Any, says: str | None) -> Any:
        assert ask("/mutate", sent)["allowed"] is True
        answer = ask("/validate", sent)
        message = answer.get("status", {}).get("message", "")
        assert (answer["allowed"], bool(re.search(says or "^$", message))) == (says is None, True), message
        return answer

    return check
