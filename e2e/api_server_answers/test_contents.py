"""Which answers the API server takes, by their head and body, and what it makes of those that it does not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from api_server.stub_webhook import allowing, answer, patching, raw

if TYPE_CHECKING:
    from collections.abc import Callable

    from api_server.responses import HttpAnswer
    from stub_webhook.registration import Registrar
    from stub_webhook.server import Call, Stub

    Behaviour = Callable[[Call], HttpAnswer]


def review(call: Call) -> bytes:
    return allowing(call.request).body


def as_yaml(call: Call) -> HttpAnswer:
    text = (
        "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\n"
        f"response: {{uid: {call.request['uid']}, allowed: true}}\n"
    )
    return raw(text.encode())


def status(outcome: str, **members: Any) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": outcome, **members}).encode()


def in_version(call: Call, version: str) -> HttpAnswer:
    return answer({"uid": call.request["uid"], "allowed": True}, apiVersion=version)


TAKEN: dict[str, Behaviour] = {
    "no Content-Type": lambda call: raw(review(call), content_type=""),
    "Content-Type of another kind": lambda call: raw(review(call), content_type="text/plain; charset=utf-8"),
    "Content-Type without a slash": lambda call: raw(review(call), content_type="json"),
    "YAML": as_yaml,
    "201": lambda call: raw(review(call), 201),
    "unknown members": lambda call: answer({"uid": call.request["uid"], "allowed": True, "mood": 1}, more=2),
    "patch []": lambda call: patching(call.request, []),
    "patch null": lambda call: patching(call.request, b"null"),
}
REFUSED: dict[str, tuple[Behaviour, str]] = {
    "Content-Type that cannot be read": (lambda call: raw(review(call), content_type="a/b/c; ="), "mime"),
    "204": (lambda _: raw(b"", 204), "0-length response"),
    "no body": (lambda _: raw(b""), "0-length response"),
    "302 without a Location": (lambda _: raw(b"", 302), "the server responded with the status code 302"),
    "404": (lambda _: raw(b"no such page", 404), "the server could not find the requested resource"),
    "500 with text": (
        lambda _: raw(b"it broke", 500, content_type="text/plain"),
        'an error on the server ("it broke")',
    ),
    "500 with text that says it is JSON": (lambda _: raw(b"it broke", 500), 'an error on the server ("unknown")'),
    "500 with a Status": (
        lambda _: raw(status("Failure", message="it broke"), 500),
        "failed to call webhook: it broke",
    ),
    "a Status of failure": (lambda _: raw(status("Failure", message="it broke")), "converting (v1.Status)"),
    "a Status of success": (lambda _: raw(status("Success")), "converting (v1.Status)"),
    "cut JSON": (lambda call: raw(review(call)[:-3]), "json parse error"),
    "no object": (lambda _: raw(b"[]"), "json parse error"),
    "empty object": (lambda _: raw(b"{}"), "webhook response was absent"),
    "another kind": (
        lambda call: answer({"uid": call.request["uid"], "allowed": True}, kind="Review"),
        'no kind "Review" is registered',
    ),
    "no kind": (
        lambda call: answer({"uid": call.request["uid"], "allowed": True}, kind=None),
        "expected webhook response of",
    ),
    "allowed as a string": (lambda call: allowing(call.request, allowed="true"), "cannot unmarshal string"),
    "no response": (lambda _: answer(None), "webhook response was absent"),
    "wrong uid": (lambda call: allowing(call.request, uid="another"), "expected response.uid"),
    "another version": (
        lambda call: in_version(call, "admission.k8s.io/v1beta1"),
        "converting (v1beta1.AdmissionReview)",
    ),
    "unknown version": (
        lambda call: in_version(call, "admission.k8s.io/v2"),
        'no kind "AdmissionReview" is registered',
    ),
    "patch without patchType": (lambda call: patching(call.request, [], patchType=None), "patchType"),
    "patchType without patch": (lambda call: allowing(call.request, patchType="JSONPatch"), "patchType"),
    "another patchType": (
        lambda call: patching(call.request, b"[{}]", patchType="Merge"),
        'unsupported patch type "Merge"',
    ),
    "patch that is no JSON": (lambda call: patching(call.request, b"[{"), "unexpected end of JSON input"),
    "patch that is not base64": (lambda call: patching(call.request, [], patch="%"), "illegal base64 data"),
}
ADD_LABEL: list[dict[str, Any]] = [{"op": "add", "path": "/metadata/labels/a", "value": "b"}]
NEVER_LET_PASS: dict[str, tuple[Behaviour, int, str]] = {
    "patch whose parent is missing": (lambda call: patching(call.request, ADD_LABEL), 500, "missing path"),
    "patch that gives another type": (
        lambda call: patching(call.request, [{"op": "add", "path": "/data", "value": "text"}]),
        500,
        "cannot unmarshal",
    ),
    "patch that gives an invalid object": (
        lambda call: patching(call.request, [{"op": "add", "path": "/metadata/labels", "value": {"-": "b"}}]),
        422,
        "Invalid value",
    ),
    "denial": (lambda call: allowing(call.request, allowed=False), 400, "denied the request without explanation"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_is_taken(stub: Stub, registrar: Registrar, name: str) -> None:
    stub.behaviour = TAKEN[name]
    with registrar.registered("mutating", registrar.hook()):
        answered = registrar.try_create()
    assert answered.ok, answered.message
    assert len(stub.calls) == 1


@pytest.mark.parametrize("name", REFUSED)
def test_is_a_failed_call(stub: Stub, registrar: Registrar, name: str) -> None:
    stub.behaviour, message = REFUSED[name]
    with registrar.registered("mutating", registrar.hook(failurePolicy="Fail")):
        answered = registrar.try_create()
    assert answered.code == 500
    assert 'failed calling webhook "hook-1.answers.e2e.gpugate.dev"' in answered.message
    assert message in answered.message


@pytest.mark.parametrize("name", REFUSED)
def test_passes_a_failed_call_where_failures_are_ignored(stub: Stub, registrar: Registrar, name: str) -> None:
    stub.behaviour = REFUSED[name][0]
    with registrar.registered("mutating", registrar.hook(failurePolicy="Ignore")):
        assert registrar.try_create().ok


@pytest.mark.parametrize("name", NEVER_LET_PASS)
def test_is_refused_even_where_failures_are_ignored(stub: Stub, registrar: Registrar, name: str) -> None:
    stub.behaviour, code, message = NEVER_LET_PASS[name]
    with registrar.registered("mutating", registrar.hook(failurePolicy="Ignore")):
        answered = registrar.try_create()
    assert answered.code == code
    assert message in answered.message


@pytest.mark.parametrize(
    ("members", "code", "message"),
    [
        ({}, 400, 'admission webhook "hook-1.answers.e2e.gpugate.dev" denied the request without explanation'),
        ({"status": {"message": "because"}}, 400, "denied the request: because"),
        ({"status": {"message": "because", "code": 403}}, 403, "denied the request: because"),
        ({"status": {"message": "because", "code": 200}}, 400, "denied the request: because"),
        ({"status": {"reason": "Forbidden", "code": 403}}, 403, "denied the request: Forbidden"),
        ({"status": {"message": "one\ntwo", "code": 403}}, 403, "denied the request: one\ntwo"),
    ],
    ids=["nothing", "message", "code", "code-of-success", "reason", "two-lines"],
)
def test_words_of_a_denial(stub: Stub, registrar: Registrar, members: dict[str, Any], code: int, message: str) -> None:
    stub.behaviour = lambda call: allowing(call.request, allowed=False, **members)
    with registrar.registered("validating", registrar.hook()):
        answered = registrar.try_create()
    assert answered.code == code
    assert answered.message.endswith(message)


@pytest.mark.parametrize("patch", [b"[]", b'[{"op":"test","path":"/kind","value":"ConfigMap"}]'], ids=["empty", "test"])
def test_a_validating_webhook_may_not_send_a_patch(stub: Stub, registrar: Registrar, patch: bytes) -> None:
    stub.behaviour = lambda call: patching(call.request, patch)
    with registrar.registered("validating", registrar.hook()):
        assert "failed calling webhook" in registrar.try_create().message
