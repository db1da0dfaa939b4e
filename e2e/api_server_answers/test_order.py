"""In which order the API server asks webhooks, and how often."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from api_server.stub_webhook import allowing, patching
from stub_webhook.server import Call, Stub, allow

if TYPE_CHECKING:
    from api_server.responses import HttpAnswer
    from stub_webhook.registration import Registrar


def annotated(call: Call, key: str, value: str) -> HttpAnswer:
    metadata = call.request["object"]["metadata"]
    parent: list[dict[str, Any]] = [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    patch = [] if metadata.get("annotations") else parent
    return patching(call.request, [*patch, {"op": "add", "path": f"/metadata/annotations/{key}", "value": value}])


def paths(stub: Stub) -> list[str]:
    return [call.path for call in stub.calls]


def test_mutating_webhooks_come_by_the_name_of_their_configuration_and_its_order(
    stub: Stub, registrar: Registrar
) -> None:
    with (
        registrar.registered("mutating", registrar.hook("/b1"), registrar.hook("/b2"), name="b.e2e.gpugate.dev"),
        registrar.registered("mutating", registrar.hook("/a1"), name="a.e2e.gpugate.dev"),
        registrar.registered("validating", registrar.hook("/v"), name="a.e2e.gpugate.dev"),
    ):
        assert registrar.try_create().ok
    assert paths(stub) == ["/a1", "/b1", "/b2", "/v"]


@pytest.mark.parametrize(("phase", "at_once"), [("mutating", False), ("validating", True)])
def test_only_validating_webhooks_are_asked_side_by_side(
    stub: Stub, registrar: Registrar, phase: str, *, at_once: bool
) -> None:
    both = threading.Barrier(2)
    met = []

    def behaviour(call: Call) -> HttpAnswer:
        try:
            # Those that are not asked side by side wait in vain.
            both.wait(timeout=15 if at_once else 2)
        except threading.BrokenBarrierError:
            return allow(call)
        met.append(call.path)
        return allow(call)

    stub.behaviour = behaviour
    hooks = [registrar.hook(path, timeoutSeconds=20) for path in ("/one", "/two")]
    with registrar.registered(phase, *hooks):
        assert registrar.try_create().ok
    assert bool(met) == at_once


def test_one_denial_is_shown_of_several(stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda call: allowing(call.request, allowed=False, status={"message": call.path})
    with registrar.registered("validating", registrar.hook("/one"), registrar.hook("/two")):
        message = registrar.try_create().message
    assert ("/one" in message) != ("/two" in message)


@pytest.mark.parametrize(
    ("first", "second", "asked"),
    [
        # Each always changes something.
        ("Never", "Never", ["/first", "/second"]),
        ("IfNeeded", "Never", ["/first", "/second", "/first"]),
        ("IfNeeded", "IfNeeded", ["/first", "/second", "/first", "/second"]),
        # Nobody changes anything after the second.
        ("Never", "IfNeeded", ["/first", "/second"]),
    ],
)
def test_reinvocation(stub: Stub, registrar: Registrar, first: str, second: str, asked: list[str]) -> None:
    stub.behaviour = lambda call: annotated(call, call.path[1:], str(len(stub.calls)))
    hooks = (
        registrar.hook("/first", reinvocationPolicy=first),
        registrar.hook("/second", reinvocationPolicy=second),
    )
    with registrar.registered("mutating", *hooks):
        assert registrar.try_create().ok
    assert paths(stub) == asked


def test_a_patch_that_changes_nothing_causes_no_reinvocation(stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda call: annotated(call, "same", "value")
    hooks = [registrar.hook(path, reinvocationPolicy="IfNeeded") for path in ("/first", "/second")]
    with registrar.registered("mutating", *hooks):
        assert registrar.try_create().ok
    assert paths(stub) == ["/first", "/second"]


def test_a_webhook_that_was_passed_over_is_not_asked_in_the_second_round(stub: Stub, registrar: Registrar) -> None:
    labels = [{"op": "add", "path": "/metadata/labels", "value": {"wanted": "yes"}}]
    stub.behaviour = lambda call: patching(call.request, labels) if call.path == "/labels" else allow(call)
    wanted = {"matchLabels": {"wanted": "yes"}}
    hooks = (
        registrar.hook("/passed-over", objectSelector=wanted, reinvocationPolicy="IfNeeded"),
        registrar.hook("/labels"),
        registrar.hook("/after", objectSelector=wanted),
    )
    with registrar.registered("mutating", *hooks):
        assert registrar.try_create().ok
    assert paths(stub) == ["/labels", "/after"]


def test_each_round_has_a_uid_of_its_own(stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda call: annotated(call, call.path[1:], str(len(stub.calls)))
    hooks = (registrar.hook("/first", reinvocationPolicy="IfNeeded"), registrar.hook("/second"))
    with registrar.registered("mutating", *hooks):
        assert registrar.try_create().ok
    assert len({call.request["uid"] for call in stub.calls}) == 3
