"""An answer that the API server would not use is found out."""

from __future__ import annotations

import json

import pytest
from api_server.errors import CallError
from api_server.responses import V1, HttpAnswer, Response, verify
from api_server.stub_webhook import allowing, answer, patching, raw

ASKED = {"uid": "u"}
ADD = [{"op": "add", "path": "/metadata/labels/x", "value": "y"}]
STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": 400}
BOTH = ("mutating", "validating")


def text(body: str, status: int = 200, **headers: str) -> HttpAnswer:
    return raw(body.encode(), status, **headers)


# What comes back, what is said of it, and which webhooks must not send it.
UNUSABLE: dict[str, tuple[HttpAnswer, str, tuple[str, ...]]] = {
    "400": (text("no", 400), "HTTP status 400", BOTH),
    "redirect": (text("", 307, location="/elsewhere"), "HTTP status 307", BOTH),
    "207": (text("{}", 207), "HTTP status 207", BOTH),
    "empty-body": (text(""), "0-length response", BOTH),
    "content-type": (text("{}", content_type="application/json; charset"), "mime", BOTH),
    "not-json": (text("webhook invalid response"), "json parse error", BOTH),
    "a-list": (text("[]"), "json parse error", BOTH),
    "response-a-string": (answer("yes"), "response is not an object", BOTH),
    "allowed-a-string": (allowing(ASKED, allowed="true"), "allowed", BOTH),
    "code-a-string": (allowing(ASKED, allowed=False, status={"code": "403"}), "code", BOTH),
    "warnings-a-string": (allowing(ASKED, warnings="w"), "warnings", BOTH),
    "annotation-a-number": (allowing(ASKED, auditAnnotations={"k": 1}), "auditAnnotations", BOTH),
    "status": (raw(json.dumps(STATUS).encode()), "webhook: no", BOTH),
    "no-response": (answer(None), "response was absent", BOTH),
    "another-uid": (allowing(ASKED, uid="other"), 'expected response.uid="u"', BOTH),
    "no-uid": (answer({"allowed": True}), 'expected response.uid="u"', BOTH),
    "no-kind": (answer(ASKED, kind=None), "expected webhook response of", BOTH),
    "v1beta1": (answer(ASKED, apiVersion="admission.k8s.io/v1beta1"), "expected webhook response of", BOTH),
    "no-patch-type": (patching(ASKED, ADD, patchType=None), "not response.patchType", ("mutating",)),
    "no-patch": (patching(ASKED, ADD, patch=None), "not response.patch", ("mutating",)),
    "patch": (patching(ASKED, ADD, patchType=None), "may not return", ("validating",)),
    "patch-type": (patching(ASKED, ADD, patch=None), "may not return", ("validating",)),
    "not-base64": (patching(ASKED, ADD, patch="[{}]"), "illegal base64", BOTH),
    "merge-patch": (patching(ASKED, ADD, patchType="MergePatch"), "MergePatch", ("mutating",)),
}


@pytest.mark.parametrize(
    ("phase", "found", "said"),
    [
        pytest.param(phase, found, said, id=f"{name}-{phase}")
        for name, (found, said, phases) in UNUSABLE.items()
        for phase in phases
    ],
)
def test_refused(phase: str, found: HttpAnswer, said: str) -> None:
    with pytest.raises(CallError, match=said):
        verify(found, "u", V1, mutating=phase == "mutating")


@pytest.mark.parametrize(
    ("found", "read"),
    [
        pytest.param(allowing(ASKED), Response(allowed=True), id="allowed"),
        pytest.param(allowing(ASKED, future={"a": 1}), Response(allowed=True), id="unknown-member"),
        pytest.param(allowing(ASKED, warnings=None, patch=None), Response(allowed=True), id="null-members"),
        pytest.param(raw(allowing(ASKED).body, 206, content_type=""), Response(allowed=True), id="206"),
        pytest.param(patching(ASKED, ADD), Response(allowed=True, patch=json.dumps(ADD).encode()), id="patched"),
        pytest.param(
            allowing(ASKED, allowed=False, warnings=["w"], auditAnnotations={"a": "b"}, status={"code": 403}),
            Response(allowed=False, status={"code": 403}, warnings=("w",), audit_annotations={"a": "b"}),
            id="denied",
        ),
    ],
)
def test_read(found: HttpAnswer, read: Response) -> None:
    assert verify(found, "u", V1, mutating=True) == read


def test_v1beta1_is_verified_less() -> None:
    found = patching(ASKED, ADD, uid="other", patchType=None)
    assert verify(found, "u", "admission.k8s.io/v1beta1", mutating=True).patch == json.dumps(ADD).encode()
