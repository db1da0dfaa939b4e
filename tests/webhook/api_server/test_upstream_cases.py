"""The cases by which kube-apiserver tests its own webhook client, by their paths.

Source: `k8s.io/apiserver` pkg/admission/plugin/webhook/testing/{testcase,webhook_server}.go, v1.36; what each path does is
said in our own words.
"""

from __future__ import annotations

from typing import Any, Literal

import pytest
from api_server.attributes import create
from api_server.errors import TransportError
from api_server.stub_webhook import InProcess, allowing, answer, patching, raw, with_webhook
from api_server.webhooks import Webhook

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "pod", "namespace": "team", "labels": {"remove": "me"}},
    "spec": {"containers": []},
}
CALL_FAILED = 'Internal error occurred: failed calling webhook "w.example.com"'
BOTH = ("mutating", "validating")
MUTATING = ("mutating",)


def hang_up(_: object) -> Any:
    raise TransportError('failed to call webhook: Post "https://webhook/nonStatusError": EOF')


def label(op: str, key: str, **value: str) -> Any:
    return lambda request: patching(request, [{"op": op, "path": f"/metadata/labels/{key}", **value}])


# What the webhook at a path does; whether the request is admitted under Fail and under Ignore; which phases.
PATHS: dict[str, tuple[Any, bool, bool, tuple[str, ...]]] = {
    "/internalErr": (lambda _: raw(b"webhook internal server error", 500), False, True, BOTH),
    "/invalidReq": (lambda _: raw(b"webhook invalid request", 101), False, True, BOTH),
    "/invalidResp": (lambda _: raw(b"webhook invalid response"), False, True, BOTH),
    "/disallow": (lambda r: allowing(r, allowed=False), False, False, BOTH),
    "/disallowReason": (
        lambda r: allowing(r, allowed=False, status={"message": "you shall not pass"}),
        False,
        False,
        BOTH,
    ),
    "/allow": (allowing, True, True, BOTH),
    "/removeLabel": (label("remove", "remove"), True, True, MUTATING),
    "/addLabel": (label("add", "added", value="test"), True, True, MUTATING),
    "/invalidPatch": (lambda r: patching(r, b'[{"op": "add", "CORRUPTED_KEY":}]'), False, True, MUTATING),
    "/invalidMutation": (
        lambda r: patching(r, [{"op": "add", "path": "/metadata/labels", "value": "not a map"}]),
        False,
        False,
        MUTATING,
    ),
    "/nonStatusError": (hang_up, False, True, BOTH),
    "/nilResponse": (lambda _: answer(None), False, True, BOTH),
    "/invalidAnnotation": (lambda r: allowing(r, auditAnnotations={"invalid*key": "v"}), True, True, BOTH),
    "/noop": (label("add", "remove", value="me"), True, True, MUTATING),
}
CASES = [
    pytest.param(behaviour, phase, policy, expected, id=f"{path[1:]}-{phase}-{policy}")
    for path, (behaviour, fail, ignore, phases) in PATHS.items()
    for phase in phases
    for policy, expected in (("Fail", fail), ("Ignore", ignore))
]


def admit(behaviour: Any, phase: str = "mutating", policy: Literal["Fail", "Ignore"] = "Fail") -> Any:
    webhook = Webhook("w.example.com", InProcess(behaviour), policy, ours=False)
    return with_webhook(phase, webhook).admit(create(POD))


@pytest.mark.parametrize(("behaviour", "phase", "policy", "expected"), CASES)
def test_admitted(
    behaviour: Any,
    phase: str,
    policy: Literal["Fail", "Ignore"],
    expected: bool,  # noqa: FBT001 -- a table's column
) -> None:
    assert admit(behaviour, phase, policy).admitted is expected


@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("/removeLabel", {}),
        ("/addLabel", {"remove": "me", "added": "test"}),
        ("/noop", {"remove": "me"}),
        ("/allow", {"remove": "me"}),
    ],
)
def test_labels(path: str, labels: dict[str, str]) -> None:
    assert admit(PATHS[path][0]).object["metadata"]["labels"] == labels


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/disallow", 'admission webhook "w.example.com" denied the request without explanation'),
        ("/disallowReason", 'admission webhook "w.example.com" denied the request: you shall not pass'),
        (
            "/nilResponse",
            f"{CALL_FAILED}: received invalid webhook response: webhook response was absent",
        ),
    ],
)
def test_message(path: str, message: str) -> None:
    assert admit(PATHS[path][0]).message == message


def test_an_invalid_annotation_is_dropped() -> None:
    outcome = admit(PATHS["/invalidAnnotation"][0])
    assert (outcome.audit_annotations, outcome.dropped_annotations) == ({}, ("w.example.com/invalid*key",))


def test_a_noop_does_not_count_as_a_change() -> None:
    webhook = Webhook("w.example.com", InProcess(PATHS["/noop"][0]), reinvocation_policy="IfNeeded")
    assert len(with_webhook("mutating", webhook).admit(create(POD)).calls) == 1
