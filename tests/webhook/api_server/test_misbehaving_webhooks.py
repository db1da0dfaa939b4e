"""A webhook that misbehaves is caught, and its failurePolicy is applied as kube-apiserver applies it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import pytest
from api_server import errors
from api_server.admission import ApiServer
from api_server.attributes import create, delete
from api_server.client import Client
from api_server.managed_fields import without_managed_fields
from api_server.stub_webhook import InProcess, StubServer, allowing, answer, patching, raw, with_webhook
from api_server.webhooks import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable

    from api_server.outcomes import Outcome
    from api_server.responses import HttpAnswer

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "team", "labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}
ADD = [{"op": "add", "path": "/metadata/labels/x", "value": "y"}]
STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": 400}
BOTH = ("mutating", "validating")


def send(
    phase: str,
    behaviour: Callable[[dict[str, Any]], HttpAnswer],
    policy: Literal["Fail", "Ignore"],
    *,
    deletion: bool = False,
    versions: tuple[str, ...] = ("v1",),
) -> Outcome:
    webhook = Webhook("w.example.com", InProcess(behaviour), policy, versions=versions, ours=False)
    return with_webhook(phase, webhook).admit(delete(POD) if deletion else create(POD))


def text(body: str, status: int = 200, **headers: str) -> Callable[[object], HttpAnswer]:
    return lambda _: raw(body.encode(), status, **headers)


# What comes back, the error it is, and to which webhooks it is one.
FAILED_CALLS: dict[str, tuple[Any, type[errors.CallError], tuple[str, ...]]] = {
    "P-051-400": (text("no", 400), errors.HttpStatusError, BOTH),
    "P-051-404": (text("", 404), errors.HttpStatusError, BOTH),
    "P-051-500": (text("webhook internal server error", 500), errors.HttpStatusError, BOTH),
    "P-051-207": (text("{}", 207), errors.HttpStatusError, BOTH),
    "P-052-empty-body": (text(""), errors.EmptyBodyError, BOTH),
    "P-053-content-type": (text("{}", content_type="application/json; charset"), errors.MediaTypeError, BOTH),
    "P-054-not-json": (text("webhook invalid response"), errors.UndecodableReviewError, BOTH),
    "P-054-truncated": (text('{"kind":"AdmissionReview","resp'), errors.UndecodableReviewError, BOTH),
    "P-054-a-list": (text("[]"), errors.UndecodableReviewError, BOTH),
    "P-054-response-a-string": (lambda _: answer("yes"), errors.UndecodableReviewError, BOTH),
    "P-054-allowed-a-string": (lambda r: allowing(r, allowed="true"), errors.UndecodableReviewError, BOTH),
    "P-054-code-a-string": (
        lambda r: allowing(r, allowed=False, status={"code": "403"}),
        errors.UndecodableReviewError,
        BOTH,
    ),
    "P-054-warnings-a-string": (lambda r: allowing(r, warnings="w"), errors.UndecodableReviewError, BOTH),
    "P-054-annotation-a-number": (
        lambda r: allowing(r, auditAnnotations={"k": 1}),
        errors.UndecodableReviewError,
        BOTH,
    ),
    "P-055-status-failure": (lambda _: raw(json.dumps(STATUS).encode()), errors.StatusAnswerError, BOTH),
    "P-055-status-success": (
        lambda _: raw(json.dumps(STATUS | {"status": "Success"}).encode()),
        errors.AbsentResponseError,
        BOTH,
    ),
    "P-056-no-response": (lambda _: answer(None), errors.AbsentResponseError, BOTH),
    "P-057-another-uid": (lambda r: allowing(r, uid="other"), errors.WrongUidError, BOTH),
    "P-057-no-uid": (lambda _: answer({"allowed": True}), errors.WrongUidError, BOTH),
    "P-058-no-kind": (lambda r: answer({"uid": r["uid"]}, kind=None), errors.WrongTypeError, BOTH),
    "P-058-no-api-version": (lambda r: answer({"uid": r["uid"]}, apiVersion=None), errors.WrongTypeError, BOTH),
    "P-058-v1beta1": (
        lambda r: answer({"uid": r["uid"]}, apiVersion="admission.k8s.io/v1beta1"),
        errors.WrongTypeError,
        BOTH,
    ),
    "P-059-no-patch-type": (lambda r: patching(r, ADD, patchType=None), errors.PatchTypeMismatchError, ("mutating",)),
    "P-059-no-patch": (lambda r: patching(r, ADD, patch=None), errors.PatchTypeMismatchError, ("mutating",)),
    "P-059-empty-patch-type": (lambda r: patching(r, ADD, patchType=""), errors.PatchTypeMismatchError, ("mutating",)),
    "P-060-patch": (lambda r: patching(r, ADD, patchType=None), errors.ValidatingPatchError, ("validating",)),
    "P-060-patch-type": (lambda r: patching(r, ADD, patch=None), errors.ValidatingPatchError, ("validating",)),
    "P-061-not-base64": (lambda r: patching(r, ADD, patch="[{}]"), errors.UndecodableReviewError, BOTH),
    "P-062-not-json": (
        lambda r: patching(r, b'[{"op": "add", "CORRUPTED_KEY":}]'),
        errors.UndecodablePatchError,
        ("mutating",),
    ),
    "P-062-an-object": (lambda r: patching(r, b"{}"), errors.UndecodablePatchError, ("mutating",)),
    "P-062-of-strings": (lambda r: patching(r, b'["add"]'), errors.UndecodablePatchError, ("mutating",)),
    "P-063-merge-patch": (
        lambda r: patching(r, ADD, patchType="MergePatch"),
        errors.UnsupportedPatchTypeError,
        ("mutating",),
    ),
}
CALLS = [
    pytest.param(phase, behaviour, error, id=f"{name}-{phase}")
    for name, (behaviour, error, phases) in FAILED_CALLS.items()
    for phase in phases
]


@pytest.mark.parametrize(("phase", "behaviour", "error"), CALLS)
def test_a_failed_call_is_named(phase: str, behaviour: Any, error: type[errors.CallError]) -> None:
    (call,) = send(phase, behaviour, "Ignore").calls
    assert type(call.error) is error


@pytest.mark.parametrize(("phase", "behaviour", "error"), CALLS)
def test_a_failed_call_fails_the_request_under_fail(phase: str, behaviour: Any, error: type[errors.CallError]) -> None:
    outcome = send(phase, behaviour, "Fail")
    assert (outcome.admitted, outcome.status and outcome.status["code"]) == (False, 500), error
    assert outcome.message.startswith('Internal error occurred: failed calling webhook "w.example.com": ')


@pytest.mark.parametrize(("phase", "behaviour", "error"), CALLS)
def test_a_failed_call_lets_the_request_through_under_ignore(
    phase: str, behaviour: Any, error: type[errors.CallError]
) -> None:
    outcome = send(phase, behaviour, "Ignore")
    assert (outcome.admitted, outcome.failed_open) == (True, ("w.example.com",)), error
    key = f"failed-open.{'mutation' if phase == 'mutating' else 'validating'}.webhook.admission.k8s.io/round_0_index_0"
    assert outcome.audit_annotations[key] == "w.example.com"


def patch(*operations: dict[str, Any]) -> Callable[[dict[str, Any]], HttpAnswer]:
    return lambda request: patching(request, operations)


REJECTED: dict[str, tuple[Any, bool, str]] = {
    "P-065-on-delete": (patch(*ADD), True, "which is not supported for this operation"),
    "P-066-no-parent": (patch({"op": "add", "path": "/status/x/y", "value": 1}), False, "doc is missing path"),
    "P-066-test-fails": (patch({"op": "test", "path": "/kind", "value": "x"}), False, "testing value /kind failed"),
    "P-066-index": (patch({"op": "remove", "path": "/spec/containers/5"}), False, "invalid index: 5"),
    "P-066-unknown-operation": (patch({"op": "frobnicate", "path": "/kind"}), False, "Unexpected kind: frobnicate"),
    "P-067-label-a-number": (
        patch({"op": "add", "path": "/metadata/labels/x", "value": 1}),
        False,
        "Pod.metadata.labels.x",
    ),
    "P-067-seconds-a-string": (
        patch({"op": "add", "path": "/spec/terminationGracePeriodSeconds", "value": "30"}),
        False,
        "Pod.spec.terminationGracePeriodSeconds",
    ),
    "P-067-tolerations-an-object": (
        patch({"op": "add", "path": "/spec/tolerations", "value": {"key": "a"}}),
        False,
        "Pod.spec.tolerations",
    ),
    "P-067-another-kind": (patch({"op": "replace", "path": "/kind", "value": "Dog"}), False, 'no kind "Dog"'),
}


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize(("behaviour", "deletion", "message"), REJECTED.values(), ids=REJECTED)
def test_a_patch_that_cannot_be_used_rejects_the_request_whatever_the_policy(
    behaviour: Any,
    deletion: bool,  # noqa: FBT001 -- a table's column
    message: str,
    policy: Literal["Fail", "Ignore"],
) -> None:
    outcome = send("mutating", behaviour, policy, deletion=deletion)
    assert (outcome.admitted, outcome.status and outcome.status["code"]) == (False, 500)
    assert message in outcome.message


@pytest.mark.parametrize(
    ("phase", "behaviour"),
    [
        pytest.param("mutating", lambda r: patching(r, b"[]"), id="P-064-empty-patch"),
        pytest.param("mutating", lambda r: patching(r, b"null"), id="P-064-null-patch"),
        pytest.param("mutating", lambda r: allowing(r, status={"message": "x"}), id="P-073-status-of-allowed"),
        pytest.param("mutating", lambda r: allowing(r, future={"a": 1}), id="P-080-unknown-member"),
        pytest.param("mutating", lambda r: allowing(r, warnings=None, patch=None), id="null-members"),
        pytest.param("validating", lambda r: raw(allowing(r).body, 206, content_type=""), id="P-050-206"),
    ],
)
def test_accepted_without_a_change(phase: str, behaviour: Any) -> None:
    outcome = send(phase, behaviour, "Fail")
    assert (outcome.admitted, outcome.failed_open) == (True, ())
    stored = without_managed_fields(outcome.object)
    assert stored is not None
    assert POD["metadata"].items() <= stored["metadata"].items()
    assert stored["spec"] == POD["spec"]


def test_P_077_v1beta1_is_verified_less() -> None:  # noqa: N802 -- the contract's number
    outcome = send("mutating", lambda r: patching(r, ADD, uid="other", patchType=None), "Fail", versions=("v1beta1",))
    assert outcome.object is not None
    assert outcome.object["metadata"]["labels"] == {"a": "b", "x": "y"}


def test_P_079_no_version_in_common() -> None:  # noqa: N802 -- the contract's number
    assert "could not create admission objects" in send("mutating", allowing, "Fail", versions=("v2",)).message


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_redirect_fails_the_test_whatever_the_policy(stub: StubServer, policy: Literal["Fail", "Ignore"]) -> None:
    stub.behaviour = lambda _: raw(b"", 307, location="/elsewhere")
    client = Client(f"{stub.url}/hook", stub.ca_file)
    with pytest.raises(errors.ConductError, match="307"):
        ApiServer(validating=(Webhook("w.example.com", client, policy),)).admit(create(POD))
    client.close()


@pytest.mark.parametrize(("policy", "admitted"), [("Fail", False), ("Ignore", True)])
def test_a_closed_connection_over_the_wire(
    stub: StubServer,
    policy: Literal["Fail", "Ignore"],
    admitted: bool,  # noqa: FBT001 -- a table's column
) -> None:
    stub.behaviour = lambda _: None
    client = Client(f"{stub.url}/hook", stub.ca_file)
    outcome = ApiServer(mutating=(Webhook("w.example.com", client, policy),)).admit(create(POD))
    client.close()
    assert outcome.admitted is admitted


def test_a_patch_of_ours_that_others_would_read_differently_fails_the_test() -> None:
    behaviour = patch({"op": "replace", "path": "/metadata/labels/new", "value": "x"})
    with pytest.raises(errors.ConductError, match="does not exist"):
        ApiServer(mutating=(Webhook("w.example.com", InProcess(behaviour)),)).admit(create(POD))
