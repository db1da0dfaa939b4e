from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.verdict import Finding, Outcome, Verdict
from gpugate.policies.sdk.findings import Patch, Stance, Violation
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.response import (
    LARGEST,
    LONGEST_MESSAGE,
    encode,
    encode_operations,
    refuse,
    status,
)
from gpugate.webhook.admission.review import Review, UnacceptableError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
POD = GroupVersionKind("", "v1", "Pod")
ADD = {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}

# Control and bidirectional characters, lone surrogates, and texts far above the length limits.
_odd = st.characters() | st.sampled_from('\n\r\t\0\x1b\x7f\x85\u200b\u202e\u2028\u2066\ufeff\ud800\udfff"\\')
texts = st.text(_odd, max_size=300) | st.builds(
    lambda text, times: text * times, st.text(_odd, max_size=10), st.just(1024)
)
paths = st.lists(texts | st.integers(0, 9), max_size=4).map(tuple)


def values_of(struct: Callable[..., T], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[T]:
    """Build structs: `builds` would resolve their annotations, some of which are imported for type checking only."""
    return st.builds(lambda **values: struct(**values), **fields)  # noqa: PLW0108 -- a function without annotations


findings = values_of(
    Finding,
    policy=st.from_regex(r"[a-z]{1,20}/[a-z]{1,40}", fullmatch=True),
    path=paths,
    message=texts,
    stance=st.sampled_from(Stance),
    hint=texts,
)
patches = values_of(Patch, op=st.just("set"), path=paths, value=st.none(), reason=texts)
outcomes = values_of(
    Outcome,
    policy=st.from_regex(r"[a-z]{1,20}/[a-z]{1,40}", fullmatch=True),
    stance=st.sampled_from(Stance),
    findings=st.lists(findings, max_size=8).map(tuple),
    patches=st.lists(patches, max_size=2).map(tuple),
    skipped=st.lists(texts, max_size=2).map(tuple),
    error=texts,
)
requests = st.builds(
    Request, kind=st.just(POD), operation=st.sampled_from(Operation), object=st.just({"metadata": {"name": "a"}})
)
verdicts = values_of(
    Verdict,
    request=requests,
    outcomes=st.lists(outcomes, max_size=40).map(tuple),
    malformed=st.lists(values_of(Violation, path=paths, message=texts), max_size=3).map(tuple),
    operations=st.sampled_from([(), (ADD,), (ADD, ADD)]),
)
uids = st.from_regex(r"[!#-\[\]-~]{1,253}", fullmatch=True)
versions = st.sampled_from(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])


def answered(body: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(body)
    return answer


def verdict(*found: Finding, operation: Operation = Operation.CREATE, **members: Any) -> tuple[Review, Verdict]:
    request = Request(POD, operation, {"metadata": {"name": "a"}})
    outcome = tuple(Outcome(f.policy, f.stance, (f,)) for f in found)
    return Review("u", "admission.k8s.io/v1", request), Verdict(request, **({"outcomes": outcome} | members))


def finding(stance: Stance = Stance.ENFORCE, message: str = "found", hint: str = "") -> Finding:
    return Finding("pods/x", ("spec",), message, stance, hint)


def response(found: tuple[Review, Verdict], phase: Phase = Phase.VALIDATE) -> dict[str, Any]:
    review_response: dict[str, Any] = answered(encode(*found, phase, "g"))["response"]
    return review_response


@settings(deadline=None)
@given(verdicts, uids, versions, st.sampled_from([Phase.MUTATE, Phase.VALIDATE]))
def test_contract(verdict: Verdict, uid: str, version: str, phase: Phase) -> None:
    """The API server accepts the response to every verdict."""
    answer = answered(encode(Review(uid, version, verdict.request), verdict, phase, "0123456789ab"))
    review_response = answer["response"]
    assert (answer["apiVersion"], answer["kind"], review_response["uid"]) == (version, "AdmissionReview", uid)
    assert review_response["allowed"] is (phase is Phase.MUTATE or verdict.allowed)
    assert ("patch" in review_response) == ("patchType" in review_response)
    may_patch = phase is Phase.MUTATE and verdict.operations and verdict.request.operation is not Operation.DELETE
    assert ("patch" in review_response) == bool(may_patch)
    assert ("status" in review_response) is not review_response["allowed"]
    if not review_response["allowed"]:
        assert review_response["status"]["code"] in {403, 422, 500}
        assert review_response["status"]["status"] == "Failure"
        assert 0 < len(review_response["status"]["message"].encode()) <= 1024
        assert review_response["status"]["message"].replace("\n", "").isprintable()
        assert review_response["status"]["reason"] in {"Forbidden", "Invalid", "InternalError"}
    warnings = review_response.get("warnings", [])
    assert len(warnings) <= 20
    assert len(set(warnings)) == len(warnings)
    assert all(0 < len(w) <= 120 and w.isprintable() for w in warnings)
    assert review_response["auditAnnotations"]["generation"] == "0123456789ab"
    for key, value in review_response["auditAnnotations"].items():
        assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", key)
        assert 0 < len(value) <= 1024


@settings(deadline=None)
@given(
    texts, uids, versions, st.sampled_from([Phase.MUTATE, Phase.VALIDATE]), st.sampled_from([400, 413, 422, 500, 504])
)
def test_contract_of_a_refusal(message: str, uid: str, version: str, phase: Phase, code: int) -> None:
    answer = answered(refuse(UnacceptableError(code, message, uid, version), phase))
    review_response = answer["response"]
    assert (answer["apiVersion"], answer["kind"], review_response["uid"]) == (version, "AdmissionReview", uid)
    assert review_response["allowed"] is (phase is Phase.MUTATE)
    assert "patch" not in review_response
    if phase is Phase.MUTATE:
        assert all(len(w) <= 120 and w.isprintable() for w in review_response["warnings"])
    else:
        assert (review_response["status"]["code"], review_response["status"]["message"].isprintable()) == (code, True)
        assert len(review_response["status"]["message"].encode()) <= 1024


@settings(deadline=None)
@given(texts, st.sampled_from([400, 404, 405, 413, 415, 418, 500]))
def test_error_body_is_a_status(message: str, code: int) -> None:
    body = answered(status(code, message))
    assert (body["kind"], body["apiVersion"], body["status"], body["code"]) == ("Status", "v1", "Failure", code)
    assert body["message"].isprintable()
    assert len(body["message"].encode()) <= 1024


def test_patch_is_base64_of_rfc_6902() -> None:
    review, evaluated = verdict(operations=(ADD,))
    review_response = response((review, evaluated), Phase.MUTATE)
    patched = jsonpatch.apply_patch(review.request.object, base64.b64decode(review_response["patch"]))
    assert (review_response["patchType"], patched["metadata"]) == (
        "JSONPatch",
        {"name": "a", "labels": {"a": "b"}} | {},
    )


@pytest.mark.parametrize(
    ("found", "phase"),
    [
        pytest.param(verdict(operations=(ADD,)), Phase.VALIDATE, id="validating"),
        pytest.param(verdict(operations=(ADD,), operation=Operation.DELETE), Phase.MUTATE, id="delete"),
        pytest.param(verdict(operations=()), Phase.MUTATE, id="nothing-to-patch"),
    ],
)
def test_no_patch(found: tuple[Review, Verdict], phase: Phase) -> None:
    assert not {"patch", "patchType"} & response(found, phase).keys()


@pytest.mark.parametrize(
    ("found", "code", "reason"),
    [
        pytest.param(verdict(finding()), 403, "Forbidden", id="found"),
        pytest.param(
            verdict(finding(), malformed=(Violation(("spec",), "must be an object"),)), 422, "Invalid", id="malformed"
        ),
        pytest.param(
            verdict(outcomes=(Outcome("pods/x", Stance.ENFORCE, error="KeyError"),)), 500, "InternalError", id="broke"
        ),
    ],
)
def test_code_and_reason_of_a_denial(found: tuple[Review, Verdict], code: int, reason: str) -> None:
    review_response = response(found)["status"]
    assert (review_response["code"], review_response["reason"]) == (code, reason)


def test_message_lists_every_denial_with_its_hint() -> None:
    found = verdict(finding(message="one", hint="do this"), finding(message="two"), finding(Stance.WARN, "three"))
    assert response(found)["status"]["message"] == "[pods/x] spec: one; do this\n[pods/x] spec: two"


def test_message_counts_what_does_not_fit() -> None:
    found = verdict(*(finding(message=f"{number:0300}") for number in range(10)))
    lines = response(found)["status"]["message"].split("\n")
    assert (len(lines), lines[-1]) == (4, "and 7 more")


@pytest.mark.parametrize("length", range(5, 60))
def test_message_of_many_lines_is_a_kibibyte_at_most(length: int) -> None:
    found = verdict(*(finding(message=f"{number:0{length}}") for number in range(300)))
    message = response(found)["status"]["message"]
    *shown, rest = message.split("\n")
    assert len(message.encode()) <= LONGEST_MESSAGE
    assert rest == f"and {300 - len(shown)} more"


def test_message_of_one_long_denial_is_cut() -> None:
    assert response(verdict(finding(message="x" * 5000)))["status"]["message"].endswith("x...")


def test_a_mutating_response_warns_about_findings_that_deny() -> None:
    review_response = response(
        verdict(malformed=(Violation(("spec", "containers"), "must be a list, not a string"),)), Phase.MUTATE
    )
    assert (review_response["allowed"], review_response["warnings"]) == (
        True,
        ["spec.containers: must be a list, not a string"],
    )


@pytest.mark.parametrize(
    ("message", "warning"),
    [
        pytest.param("found", "[pods/x] spec: found", id="as-it-is"),
        pytest.param("a\nb\x1b[31m\u202e", r"[pods/x] spec: a\nb\x1b[31m\u202e", id="control-characters"),
        pytest.param("y" * 108, f"[pods/x] {'y' * 108}", id="without-the-path-where-that-fits"),
        pytest.param("y" * 500, f"[pods/x] {'y' * 108}...", id="cut"),
    ],
)
def test_warning(message: str, warning: str) -> None:
    assert response(verdict(finding(Stance.WARN, message)))["warnings"] == [warning]


def test_warnings_are_counted_past_twenty() -> None:
    warnings = response(verdict(*(finding(Stance.WARN, str(number)) for number in range(30))))["warnings"]
    assert (len(warnings), warnings[-1]) == (20, "and 11 more warnings")


def test_annotations_list_the_policies_of_each_decision() -> None:
    patch = Patch("set", ("metadata",), {}, "adds it")
    found = verdict(
        outcomes=(
            Outcome("pods/a", Stance.ENFORCE, (finding(Stance.ENFORCE),)),
            Outcome("pods/b", Stance.WARN, (finding(Stance.WARN),)),
            Outcome("pods/c", Stance.AUDIT, (finding(Stance.AUDIT),)),
            Outcome("pods/d", Stance.ENFORCE, patches=(patch,)),
            Outcome("pods/e", Stance.ENFORCE, skipped=("no facts",)),
            Outcome("pods/f", Stance.WARN, error="KeyError"),
            Outcome("pods/g", Stance.ENFORCE),
        )
    )
    assert response(found)["auditAnnotations"] == {
        "generation": "g",
        "deny": "pods/a",
        "warn": "pods/b",
        "record": "pods/c",
        "mutate": "pods/d",
        "skip": "pods/e",
        "error": "pods/f",
    }


def test_a_response_without_findings_has_no_other_members() -> None:
    assert response(verdict()) == {"uid": "u", "allowed": True, "auditAnnotations": {"generation": "g"}}


def patched(size: int, *found: Finding) -> dict[str, Any]:
    """Return the response with a patch whose operations have this size as JSON."""
    padding = "x" * (size - len(encode_operations([{**ADD, "value": ""}])))
    outcome = Outcome("pods/d", Stance.ENFORCE, found, (Patch("set", ("metadata",), {}, "adds it"),))
    return response(verdict(outcomes=(outcome,), operations=({**ADD, "value": padding},)), Phase.MUTATE)


def test_a_patch_of_a_mebibyte_is_sent() -> None:
    review_response = patched(LARGEST)
    assert (len(base64.b64decode(review_response["patch"])), "warnings" in review_response) == (1024 * 1024, False)
    assert review_response["auditAnnotations"] == {"generation": "g", "mutate": "pods/d"}


@pytest.mark.parametrize(("found", "warnings"), [(0, 1), (3, 4), (19, 20), (20, 20), (30, 20)])
def test_a_larger_patch_is_not_sent(found: int, warnings: int) -> None:
    review_response = patched(LARGEST + 1, *(finding(Stance.WARN, str(number)) for number in range(found)))
    assert (review_response["allowed"], "patch" in review_response) == (True, False)
    assert review_response["warnings"][0] == "[gpugate] not mutated: the patch is larger than 1 MiB"
    assert len(review_response["warnings"]) == warnings
    assert review_response["auditAnnotations"]["not-mutated"] == "pods/d"
    assert "mutate" not in review_response["auditAnnotations"]


@pytest.mark.parametrize("value", [float("nan"), (1, 2), {1: 2}], ids=["NaN", "tuple", "number as a key"])
def test_a_patch_that_json_changes_is_an_error(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        encode_operations([{**ADD, "value": value}])


def test_the_same_warning_is_shown_once_and_the_uncompared_are_counted() -> None:
    def warned(*counts: int) -> list[str]:
        messages = (str(index) for index, count in enumerate(counts) for _ in range(count))
        warnings: list[str] = response(verdict(*(finding(Stance.WARN, message) for message in messages)))["warnings"]
        return warnings

    assert warned(1000) == ["[pods/x] spec: 0"]
    assert warned(999, 1) == ["[pods/x] spec: 0", "[pods/x] spec: 1"]
    # Only the first thousand are compared.
    assert warned(1000, 1) == ["[pods/x] spec: 0", "and 1 more warnings"]
    assert warned(1000, 50) == ["[pods/x] spec: 0", "and 50 more warnings"]
    assert warned(*[1] * 20)[-1] == "[pods/x] spec: 19"


@pytest.mark.parametrize(
    ("phase", "generation", "members"),
    [
        (Phase.MUTATE, "", {"allowed": True, "warnings": ["[gpugate] not mutated: m"]}),
        (
            Phase.VALIDATE,
            "g",
            {
                "allowed": False,
                "status": {"status": "Failure", "message": "m", "reason": "RequestEntityTooLarge", "code": 413},
                "auditAnnotations": {"generation": "g"},
            },
        ),
    ],
    ids=["mutating, not decoded", "validating, decoded"],
)
def test_every_member_of_a_refusal(phase: Phase, generation: str, members: dict[str, Any]) -> None:
    error = UnacceptableError(413, "m", "u", "admission.k8s.io/v1")
    assert answered(refuse(error, phase, generation))["response"] == {"uid": "u", **members}


# `metav1.StatusReason` of `k8s.io/apimachinery` meta/v1, v0.36.
REASONS = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    411: "",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    504: "Timeout",
}


@pytest.mark.parametrize(("code", "reason"), REASONS.items())
def test_every_member_of_a_status(code: int, reason: str) -> None:
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    assert answered(status(code, "m")) == {**head, "message": "m", "reason": reason, "code": code}
