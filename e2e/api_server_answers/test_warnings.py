"""Which of a webhook's warnings the user gets to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from api_server.stub_webhook import allowing

if TYPE_CHECKING:
    from stub_webhook.registration import Registrar
    from stub_webhook.server import Stub


def numbered(count: int, length: int) -> list[str]:
    return [f"{number:03} ".ljust(length, "x") for number in range(count)]


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        pytest.param(["x" * 300], ["x" * 300], id="one-longer-than-256"),
        pytest.param(["x" * 4096], ["x" * 4096], id="one-of-4096"),
        pytest.param(["x" * 4097], ["x" * 256], id="one-longer-than-4096"),
        pytest.param(numbered(20, 120), numbered(20, 120), id="twenty-of-120"),
        pytest.param(numbered(30, 254), numbered(17, 254), id="more-than-4096-in-all"),
        pytest.param(["same", "same"], ["same"], id="repeated"),
        pytest.param(["", "said"], ["said"], id="empty"),
        pytest.param(["two\nlines", "said"], ["said"], id="line-feed"),
        pytest.param(["bell\x07", "said"], ["said"], id="control-character"),
        pytest.param(['"quoted" \\ and äöü'], ['"quoted" \\ and äöü'], id="quotes-and-umlauts"),
    ],
)
def test_warnings(stub: Stub, registrar: Registrar, sent: list[str], shown: list[str]) -> None:
    stub.behaviour = lambda call: allowing(call.request, warnings=sent)
    with registrar.registered("validating", registrar.hook()):
        assert registrar.try_create().warnings == shown


def test_warnings_come_with_a_denial_too(stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda call: allowing(call.request, allowed=False, warnings=["said"])
    with registrar.registered("validating", registrar.hook()):
        answer = registrar.try_create()
    assert (answer.ok, answer.warnings) == (False, ["said"])


def test_warnings_of_all_webhooks_are_shown(stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda call: allowing(call.request, warnings=[call.path])
    with (
        registrar.registered("mutating", registrar.hook("/mutate")),
        registrar.registered("validating", registrar.hook("/validate")),
    ):
        assert registrar.try_create().warnings == ["/mutate", "/validate"]
