from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from cluster.fake_api_server import Answer, status
from cluster.reflected import FIRST, SECOND
from eventually import eventually

from gpugate.webhook.cluster import named_object as module
from gpugate.webhook.cluster.backoff import Chance
from gpugate.webhook.cluster.named_object import NamedWatch, secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.fake_api_server import FakeApiServer
    from cluster.reflected import FakeClock

    from gpugate.webhook.cluster.connection import Connection

SECRETS = ("", "secrets")
WATCH = "secrets?watch=true"


class Watched:
    """A watch of the Secret `certificates`, with its reports."""

    def __init__(self, connection: Connection, clock: FakeClock) -> None:
        self.changes = 0
        self.reasons: list[str] = []
        chance = Chance(clock, lambda: 0.5)
        location = secret("guard", "certificates")
        self.watch = NamedWatch(connection, location, self.record_change, self.reasons.append, chance)

    def record_change(self) -> None:
        self.changes += 1


@pytest.fixture
def watched(api: FakeApiServer, connection: Connection, clock: FakeClock) -> Watched:
    api.serve("", ("v1",), "Secret", "secrets")
    return Watched(connection, clock)


@pytest.fixture
def running(api: FakeApiServer, watched: Watched) -> Iterator[Watched]:
    """An open watch in its own thread."""
    stopped = threading.Event()
    thread = threading.Thread(target=watched.watch.run, args=(stopped,))
    thread.start()
    assert eventually(lambda: api.watching)
    yield watched
    stopped.set()
    watched.watch.stop()
    thread.join()


def put(api: FakeApiServer, name: str = "certificates", namespace: str = "guard") -> None:
    api.store.put(SECRETS, {"metadata": {"name": name, "namespace": namespace}})


def test_the_request_selects_one_object_in_its_current_state(api: FakeApiServer, watched: Watched) -> None:
    api.short_watches = True
    watched.watch.step()

    (request,) = api.requests
    assert request.startswith("GET /api/v1/namespaces/guard/secrets?watch=true&allowWatchBookmarks=true&fieldSelector=")
    assert "metadata.name%3Dcertificates" in request
    assert "resourceVersion" not in request


def test_every_change_is_reported(api: FakeApiServer, running: Watched) -> None:
    assert eventually(lambda: running.changes == 1)  # the start of the watch is reported as a change
    put(api)
    assert eventually(lambda: running.changes == 2)
    put(api)
    assert eventually(lambda: running.changes == 3)
    api.store.delete(SECRETS, "guard", "certificates")
    assert eventually(lambda: running.changes == 4)


def test_other_objects_and_bookmarks_are_not_reported(api: FakeApiServer, running: Watched) -> None:
    put(api, "another")
    put(api, namespace="elsewhere")
    api.store.bookmark()
    put(api)

    assert eventually(lambda: running.changes == 2)
    assert not running.reasons


def test_stop_is_not_reported_as_a_failure(api: FakeApiServer, watched: Watched) -> None:
    stopped = threading.Event()
    thread = threading.Thread(target=watched.watch.run, args=(stopped,))
    thread.start()
    assert eventually(lambda: watched.changes)
    stopped.set()
    watched.watch.stop()
    thread.join()

    assert not watched.reasons
    assert len(api.requests) == 1


FAILURES = {
    "410 as an event": (Answer(WATCH, body=b'{"type":"ERROR","object":{"code":410,"reason":"Expired"}}\n'), FIRST),
    "410 as a response": (status(WATCH, 410, "Gone"), FIRST),
    "429": (status(WATCH, 429, "TooManyRequests", Retry_After="7"), 7.0),
    "500": (status(WATCH, 500, "InternalError"), FIRST),
    "404": (status(WATCH, 404, "NotFound"), FIRST),
    "half a line": (Answer(WATCH, body=b'{"type":', cut=True), FIRST),
    "not an event": (Answer(WATCH, body=b"<html>\n"), FIRST),
    "connection lost": (Answer(WATCH, cut=True), FIRST),
    "ended at once": (Answer(WATCH), FIRST),
}


@pytest.mark.parametrize(("answer", "wait"), FAILURES.values(), ids=FAILURES)
def test_a_failure_is_reported_and_the_next_watch_recovers(
    api: FakeApiServer, watched: Watched, answer: Answer, wait: float
) -> None:
    api.answers.append(answer)
    assert watched.watch.step() == wait
    assert len(watched.reasons) == 1

    api.short_watches = True
    put(api)
    before = watched.changes
    watched.watch.step()
    assert watched.changes == before + 2  # the start of the watch, and the object


def test_a_missing_permission_is_named(api: FakeApiServer, watched: Watched) -> None:
    api.forbidden.add("secrets")

    assert [watched.watch.step(), watched.watch.step()] == [FIRST, SECOND]
    assert "gpugate may not watch secrets 'certificates' in namespace 'guard'" in watched.reasons[0]


def test_a_closed_port(closed_api: FakeApiServer, watched: Watched) -> None:
    closed_api.stop()

    assert watched.watch.step() == FIRST
    assert len(watched.reasons) == 1


def test_a_silent_watch_times_out(api: FakeApiServer, watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_READ_TIMEOUT", 0.05)
    api.answers.append(Answer(WATCH, hang=True))

    assert watched.watch.step() == FIRST
    assert watched.reasons == [f"{api.url}: the response timed out"]


def test_watches_that_end_early_are_delayed(api: FakeApiServer, watched: Watched) -> None:
    api.short_watches = True
    put(api)

    assert [watched.watch.step(), watched.watch.step()] == [FIRST, SECOND]
    assert not watched.reasons


def test_a_watch_that_reached_its_timeout_is_repeated_at_once(
    api: FakeApiServer, watched: Watched, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.short_watches = True
    put(api)
    monkeypatch.setattr(watched.watch, "_on_change", lambda: setattr(clock, "now", clock.now + 300))

    assert watched.watch.step() == 0.0
