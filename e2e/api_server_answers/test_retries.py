"""When the API server calls a webhook again, and where it follows it to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from api_server.stub_webhook import raw
from stub_webhook.server import Call, Stub, allow

if TYPE_CHECKING:
    from api_server.responses import HttpAnswer
    from stub_webhook.registration import Registrar


def first(stub: Stub, unwilling: HttpAnswer | None) -> None:
    """Answer so the first time, and as it should be from then on."""
    stub.behaviour = lambda call: unwilling if len(stub.calls) == 1 else allow(call)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_retry_after_is_obeyed_with_the_same_uid(stub: Stub, registrar: Registrar, status: int) -> None:
    first(stub, raw(b"busy", status, retry_after="1"))
    with registrar.registered("validating", registrar.hook()):
        answer = registrar.try_create()
    assert answer.ok
    assert len(stub.calls) == 2
    assert len({call.request["uid"] for call in stub.calls}) == 1


@pytest.mark.parametrize("status", [400, 404])
def test_retry_after_is_not_obeyed_where_the_call_itself_is_wrong(
    stub: Stub, registrar: Registrar, status: int
) -> None:
    first(stub, raw(b"no", status, retry_after="1"))
    with registrar.registered("validating", registrar.hook()):
        assert not registrar.try_create().ok
    assert len(stub.calls) == 1


@pytest.mark.parametrize("retry_after", ["", "soon", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_without_a_number_of_seconds_nothing_is_repeated(stub: Stub, registrar: Registrar, retry_after: str) -> None:
    first(stub, raw(b"busy", 503, retry_after=retry_after))
    with registrar.registered("validating", registrar.hook()):
        answer = registrar.try_create()
    assert answer.code == 500
    assert "failed calling webhook" in answer.message
    assert len(stub.calls) == 1


def test_retries_end_after_ten(stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda _: raw(b"busy", 429, retry_after="0")
    with registrar.registered("validating", registrar.hook()):
        assert not registrar.try_create().ok
    assert len(stub.calls) == 11


def test_retries_end_with_the_timeout(stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda _: raw(b"busy", 429, retry_after="1")
    with registrar.registered("validating", registrar.hook(timeoutSeconds=2)):
        answer = registrar.try_create()
    assert "context deadline exceeded" in answer.message
    assert len(stub.calls) <= 3


def test_a_closed_connection_is_not_repeated(stub: Stub, registrar: Registrar) -> None:
    first(stub, None)
    with registrar.registered("validating", registrar.hook()):
        answer = registrar.try_create()
    assert "EOF" in answer.message
    assert len(stub.calls) == 1


def test_a_closed_connection_that_was_used_before_is_not_repeated(stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda call: None if len(stub.calls) == 2 else allow(call)
    with registrar.registered("validating", registrar.hook()):
        assert registrar.try_create().ok
        assert not registrar.try_create().ok
    assert len(stub.calls) == 2


@pytest.mark.parametrize("status", [307, 308])
def test_redirects_are_followed(stub: Stub, registrar: Registrar, status: int) -> None:
    stub.behaviour = lambda call: raw(b"", status, location="/elsewhere") if call.path == "/" else allow(call)
    with registrar.registered("validating", registrar.hook()):
        assert registrar.try_create().ok
    assert [(call.method, call.path) for call in stub.calls] == [("POST", "/"), ("POST", "/elsewhere")]


@pytest.mark.parametrize("status", [301, 302, 303])
def test_other_redirects_are_followed_without_the_review(stub: Stub, registrar: Registrar, status: int) -> None:
    def behaviour(call: Call) -> HttpAnswer:
        return raw(b"", status, location="/elsewhere") if call.path == "/" else raw(b"{}")

    stub.behaviour = behaviour
    with registrar.registered("validating", registrar.hook()):
        assert not registrar.try_create().ok
    assert [(call.method, call.path) for call in stub.calls] == [("POST", "/"), ("GET", "/elsewhere")]
