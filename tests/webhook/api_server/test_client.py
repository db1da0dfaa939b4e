"""How often a webhook is called for one request."""

from __future__ import annotations

import time

import pytest
from api_server.client import retried
from api_server.stub_webhook import raw


@pytest.mark.parametrize(
    ("status", "retry_after", "calls"),
    [(429, "0", 11), (500, "0", 11), (503, "0", 11), (429, "soon", 1), (429, "", 1), (404, "0", 1), (200, "0", 1)],
)
def test_a_webhook_is_called_again_when_it_asks_for_it(status: int, retry_after: str, calls: int) -> None:
    answers = iter([raw(b"", status, retry_after=retry_after)] * 20)

    answer = retried(lambda: next(answers), time.monotonic() + 60)

    assert (answer.status, 20 - len(list(answers))) == (status, calls)


def test_the_first_good_answer_is_returned() -> None:
    answers = [raw(b"", 429, retry_after="0"), raw(b"first"), raw(b"second")]

    assert retried(lambda: answers.pop(0), time.monotonic() + 60).body == b"first"
