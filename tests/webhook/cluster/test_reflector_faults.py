from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cluster.fake_api_server import Answer, status
from cluster.reflected import DEPLOYMENTS, FIRST, SECOND, THIRD, WATCH, Reflected, deployment

from gpugate.webhook.cluster import reflector as module

if TYPE_CHECKING:
    from cluster.fake_api_server import FakeApiServer
    from cluster.reflected import FakeClock


EXPIRED = {
    "410 as an event": Answer(
        WATCH, body=b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
    ),
    "410 as a response": status(WATCH, 410, "Gone"),
}


@pytest.mark.parametrize("answer", EXPIRED.values(), ids=EXPIRED)
def test_an_expired_watch_lists_from_the_cache(api: FakeApiServer, synced: Reflected, answer: Answer) -> None:
    listed_at = api.store.revision
    api.answers.append(answer)
    api.store.delete(DEPLOYMENTS, "ml", "a")

    waits = synced.steps(2)

    assert waits == [FIRST, 0.0]
    assert f"resourceVersion={listed_at}&resourceVersionMatch=NotOlderThan" in api.requests[-1]
    assert synced.names == ["b"]


INVALID = {
    "an expired version": status("NotOlderThan", 410, "Expired"),
    "a version that is too new": Answer(
        "NotOlderThan",
        504,
        json.dumps({"reason": "Timeout", "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}).encode(),
    ),
}


@pytest.mark.parametrize("answer", INVALID.values(), ids=INVALID)
def test_a_list_with_an_invalid_version_is_repeated_for_the_newest(
    api: FakeApiServer, synced: Reflected, answer: Answer
) -> None:
    api.answers += [status(WATCH, 410, "Gone"), answer]

    waits = synced.steps(3)

    assert waits == [FIRST, 0.0, 0.0]
    assert api.requests[-1] == "GET /apis/apps/v1/deployments?limit=500"
    assert synced.names == ["a", "b"]


def test_decreasing_versions_restart_the_list(api: FakeApiServer, synced: Reflected) -> None:
    old = {**deployment("restored"), "metadata": {"name": "restored", "namespace": "ml", "resourceVersion": "17"}}
    api.answers.append(Answer(WATCH, body=json.dumps({"type": "ADDED", "object": old}).encode() + b"\n"))

    waits = synced.steps(2)

    assert waits == [FIRST, 0.0]
    assert api.requests[-1] == "GET /apis/apps/v1/deployments?limit=500"


RECOVERABLE = {
    "429": status(WATCH, 429, "TooManyRequests"),
    "half a JSON line": Answer(WATCH, body=b'{"type":"ADDED","obj', cut=True),
    "half a line and a regular end": Answer(WATCH, body=b'{"type":"ADDED","obj'),
    "a line that is not an event": Answer(WATCH, body=b"<html>\n"),
    "an event without an object": Answer(WATCH, body=b'{"type":"ADDED"}\n'),
    "connection lost": Answer(WATCH, cut=True),
}


@pytest.mark.parametrize("answer", RECOVERABLE.values(), ids=RECOVERABLE)
def test_a_failed_watch_continues_at_its_version(api: FakeApiServer, synced: Reflected, answer: Answer) -> None:
    api.answers.append(answer)
    api.store.delete(DEPLOYMENTS, "ml", "a")

    waits = synced.steps(2)

    assert waits == [FIRST, 0.0]
    assert len(api.asked("limit=")) == 1
    assert synced.names == ["b"]


def test_a_silent_watch_times_out(api: FakeApiServer, synced: Reflected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WATCH_SECONDS", (0.0, 0.0))
    monkeypatch.setattr(module, "_MARGIN_SECONDS", 0.05)
    api.answers.append(Answer(WATCH, hang=True))

    waits = synced.steps(1)

    assert waits == [FIRST]
    assert synced.names == ["a", "b"]


def test_a_watch_that_ends_at_once_is_a_failure(api: FakeApiServer, synced: Reflected) -> None:
    waits = synced.steps(2)

    assert waits == [FIRST, 0.0]
    assert "NotOlderThan" in api.requests[-1]


RETRY_AFTER = {
    "429 for a watch": (WATCH, 429),
    "503 for a watch": (WATCH, 503),
}


@pytest.mark.parametrize(("to", "code"), RETRY_AFTER.values(), ids=RETRY_AFTER)
def test_retry_after_is_respected(api: FakeApiServer, synced: Reflected, to: str, code: int) -> None:
    api.answers.append(status(to, code, "Busy", Retry_After="7"))

    assert synced.steps(1) == [7.0]


def test_retry_after_is_limited_to_five_minutes(api: FakeApiServer, synced: Reflected) -> None:
    api.answers.append(status(WATCH, 503, "Busy", Retry_After="31536000"))

    assert synced.steps(1) == [300.0]


def test_waits_grow_to_half_a_minute_and_are_reset(api: FakeApiServer, synced: Reflected, clock: FakeClock) -> None:
    api.answers += [status(WATCH, 429, "TooManyRequests") for _ in range(8)]

    waits = synced.steps(7)
    clock.now += 121
    again = synced.steps(1)

    assert waits == pytest.approx([1.2, 2.4, 4.8, 9.6, 19.2, 22.5, 22.5])
    assert again == [FIRST]


def test_objects_deleted_between_watches_are_removed(api: FakeApiServer, synced: Reflected) -> None:
    api.store.delete(DEPLOYMENTS, "ml", "a")
    api.store.compact()

    synced.steps(2)

    assert synced.names == ["b"]


def test_a_failed_list_keeps_the_objects(api: FakeApiServer, synced: Reflected) -> None:
    api.store.delete(DEPLOYMENTS, "ml", "a")
    api.store.compact()
    api.answers += [status("limit=500", 500, "InternalError"), Answer("limit=500", body=b"{")]

    waits = synced.steps(3)

    assert waits == [FIRST, SECOND, THIRD]
    assert synced.names == ["a", "b"]


def test_an_internal_error_does_not_stop_updates(
    api: FakeApiServer, synced: Reflected, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.store.put(DEPLOYMENTS, deployment("c"))
    with monkeypatch.context() as patch:
        patch.setattr(synced.reflector, "_apply", lambda _: 1 / 0)
        synced.steps(1)

    synced.steps(1)

    assert synced.names == ["a", "b", "c"]
