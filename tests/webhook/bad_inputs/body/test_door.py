"""Reviews of what no policy judges, reviews at the other path, and one review many times at once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

PATHS = ["/mutate", "/validate"]
MADE_UP = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"containers": 5}}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "members",
    [
        pytest.param({}, id="unknown-kind"),
        pytest.param({"resource": {"group": "", "version": "", "resource": ""}}, id="empty-resource"),
        pytest.param({"resource": {"group": "a" * 9999, "version": "v", "resource": "\n"}}, id="odd-resource"),
        pytest.param({"operation": "UPDATE", "oldObject": MADE_UP}, id="update"),
        pytest.param({"operation": "DELETE", "oldObject": MADE_UP, "object": None}, id="delete"),
    ],
)
def test_unknown_kinds_are_allowed_and_not_judged(
    ask: Callable[..., Any], review: Callable[..., Any], path: str, members: dict[str, Any]
) -> None:
    answer = ask(path, review(MADE_UP, **members))
    said = set(answer.get("auditAnnotations", {})) - {"generation"}
    assert (answer["allowed"], said, answer.get("warnings")) == (True, set(), None)


@pytest.mark.parametrize("path", PATHS)
def test_connect(ask: Callable[..., Any], captured: Callable[[str], bytes], path: str) -> None:
    sent = captured("pod-exec-connect.mutate")
    assert ask(path, sent, uid=json.loads(sent)["request"]["uid"])["allowed"] is True


def test_review_of_the_mutating_webhook_sent_to_validate_gets_no_patch(
    ask: Callable[..., Any], captured: Callable[[str], bytes]
) -> None:
    sent = captured("pod-create-gpu-untolerated.mutate")
    uid = json.loads(sent)["request"]["uid"]
    assert ("patch" in ask("/mutate", sent, uid=uid), "patch" in ask("/validate", sent, uid=uid)) == (True, False)


def test_review_of_the_validating_webhook_sent_to_mutate_is_allowed(
    ask: Callable[..., Any], captured: Callable[[str], bytes]
) -> None:
    sent = captured("nodepool-create.validate")
    uid = json.loads(sent)["request"]["uid"]
    assert ask("/mutate", sent, uid=uid)["allowed"] is True


def test_the_same_review_many_times_at_once_is_answered_each_time(
    webhook: Any, captured: Callable[[str], bytes]
) -> None:
    sent = captured("pod-create-gpu-untolerated.mutate")

    def send(_: int) -> bytes:
        connection = webhook.connect()
        try:
            connection.request("POST", "/mutate", sent, {"Content-Type": "application/json"})
            answer: bytes = connection.getresponse().read()
            return answer
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(send, range(16)))
    assert {json.loads(answer)["response"]["uid"] for answer in answers} == {json.loads(sent)["request"]["uid"]}
    assert len(answers) == 1
