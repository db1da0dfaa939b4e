"""The rules for every response to any request: each case is sent to both endpoints of the real process."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from api_server import go_json
from api_server.audit_annotations import AuditAnnotations
from api_server.patch_conduct import check
from api_server.responses import HttpAnswer, verify
from api_server.warning_headers import WarningRecorder
from example_laws import for_each_case

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
REVIEWS = Path(__file__).parents[2] / "fixtures" / "reviews"
UNUSABLE = {
    "malformed": ("pod-create-gpu-untolerated.mutate", b'"containers":[', b'"containers":["x",'),
    "too-deep": ("pod-create-gpu-untolerated.mutate", b'"spec":{', b'"spec":{"x":' + b"[" * 300 + b"]" * 300 + b","),
    "operation": ("pod-create-gpu-untolerated.mutate", b'"CREATE"', b'"PATCH"'),
    "lone-surrogate": ("pod-create-gpu-untolerated.mutate", b'"image":"x"', rb'"image":"\ud800"'),
    "truncated": ("pod-create-gpu-untolerated.mutate", b'"dryRun"', b""),
    "control-characters": (
        "pod-create-gpu-untolerated.mutate",
        b'"nvidia.com/gpu":"1"',
        rb'"nvidia.com/gpu":"\n\u001b"',
    ),
}


def sent() -> dict[str, bytes]:
    real = {path.stem: go_json.encode(json.loads(path.read_bytes())) for path in sorted(REVIEWS.glob("*.json"))}
    return real | {name: real[source].replace(old, new) for name, (source, old, new) in UNUSABLE.items()}


SENT = sent()
MEMBERS = {"uid", "allowed", "status", "patch", "patchType", "warnings", "auditAnnotations"}


@dataclass(frozen=True)
class Exchange:
    """A review, its endpoint and its response."""

    body: bytes
    mutating: bool
    answer: HttpAnswer

    @property
    def uid(self) -> str:
        found = re.search(rb'"uid":"([^"]+)"', self.body)
        assert found is not None
        return found[1].decode()

    @property
    def envelope(self) -> Json:
        review: Json = json.loads(self.answer.body)
        return review

    @property
    def response(self) -> Json:
        response: Json = self.envelope["response"]
        return response

    @property
    def request(self) -> Json:
        request: Json = json.loads(self.body)["request"]
        return request


@pytest.fixture(scope="module")
def exchange_with(webhook: Any) -> Callable[[str, str], Exchange]:
    @functools.cache
    def ask(name: str, path: str) -> Exchange:
        status, headers, body = webhook.request("POST", path, SENT[name])
        named = {key.lower(): value for key, value in headers.items()}
        return Exchange(SENT[name], path == "/mutate", HttpAnswer(status, named, body))

    return ask


def every_exchange(law: Callable[[Exchange], None]) -> Callable[..., None]:
    """Apply a law to the exchange of each review with each endpoint."""

    def of_review(case: tuple[str, str], exchange_with: Callable[[str, str], Exchange]) -> None:
        law(exchange_with(*case))

    of_review.__name__ = law.__name__
    return for_each_case({f"{name}{path}": (name, path) for name in SENT for path in ("/mutate", "/validate")})(
        of_review
    )


@every_exchange
def test_200_and_json(exchange: Exchange) -> None:
    assert (exchange.answer.status, exchange.answer.headers["content-type"]) == (200, "application/json")


@every_exchange
def test_the_api_server_accepts_it(exchange: Exchange) -> None:
    verify(exchange.answer, exchange.uid, "admission.k8s.io/v1", mutating=exchange.mutating)


@every_exchange
def test_uid_is_echoed(exchange: Exchange) -> None:
    assert exchange.response["uid"] == exchange.uid


@every_exchange
def test_type_is_that_of_the_request(exchange: Exchange) -> None:
    assert (exchange.envelope["apiVersion"], exchange.envelope["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")


@every_exchange
def test_patch_and_its_type_together(exchange: Exchange) -> None:
    assert ("patch" in exchange.response, exchange.response.get("patchType")) in {(False, None), (True, "JSONPatch")}


@every_exchange
def test_no_patch_from_validation(exchange: Exchange) -> None:
    assert exchange.mutating or "patch" not in exchange.response


@every_exchange
def test_patches_follow_the_rules(exchange: Exchange) -> None:
    patch = verify(exchange.answer, exchange.uid, "admission.k8s.io/v1", mutating=exchange.mutating).patch
    if patch:
        check(exchange.request["object"], json.loads(patch))


@every_exchange
def test_no_empty_patch(exchange: Exchange) -> None:
    patch = verify(exchange.answer, exchange.uid, "admission.k8s.io/v1", mutating=exchange.mutating).patch
    assert patch == b"" or json.loads(patch)


@every_exchange
def test_a_denial_has_a_message(exchange: Exchange) -> None:
    if not exchange.response["allowed"]:
        status = exchange.response["status"]
        assert status["message"]
        assert len(status["message"]) <= 1024


@every_exchange
def test_a_denial_has_a_code_and_a_reason(exchange: Exchange) -> None:
    if not exchange.response["allowed"]:
        status = exchange.response["status"]
        assert (status["code"] >= 400, status["status"], bool(status["reason"])) == (True, "Failure", True)


@every_exchange
def test_no_status_where_it_is_allowed(exchange: Exchange) -> None:
    assert not (exchange.response["allowed"] and "status" in exchange.response)


@every_exchange
def test_mutation_never_denies(exchange: Exchange) -> None:
    assert not exchange.mutating or exchange.response["allowed"]


@every_exchange
def test_no_annotation_is_dropped(exchange: Exchange) -> None:
    annotations = AuditAnnotations()
    for key, value in exchange.response.get("auditAnnotations", {}).items():
        annotations.add("validate.gpugate.dev", key, value)
    assert annotations.dropped == []


@every_exchange
def test_no_warning_is_dropped_or_cut(exchange: Exchange) -> None:
    recorder, warnings = WarningRecorder(), exchange.response.get("warnings", [])
    for warning in warnings:
        recorder.add(warning)
    assert recorder.sent == warnings
    assert all(len(warning) <= 120 and not warning.startswith("Warning") for warning in warnings)


@every_exchange
def test_bounded(exchange: Exchange) -> None:
    assert len(exchange.answer.body) < 16 * 1024


@every_exchange
def test_no_unknown_member(exchange: Exchange) -> None:
    assert exchange.response.keys() <= MEMBERS


@pytest.mark.parametrize("name", UNUSABLE)
def test_validation_denies_a_review_that_cannot_be_evaluated(
    name: str, exchange_with: Callable[[str, str], Exchange]
) -> None:
    assert exchange_with(name, "/validate").response["allowed"] is False


@pytest.mark.parametrize("name", UNUSABLE)
def test_mutation_warns_about_a_review_that_cannot_be_evaluated(
    name: str, exchange_with: Callable[[str, str], Exchange]
) -> None:
    assert exchange_with(name, "/mutate").response["warnings"]


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    "uid", ["a", "x" * 253, "~!#$%&'()*+,-./:;<=>?@[]^_`{|}", "00000000-0000-0000-0000-000000000000"]
)
def test_any_uid_is_echoed_byte_for_byte(webhook: Any, path: str, uid: str) -> None:
    review = json.loads(SENT["pod-delete.validate"])
    review["request"]["uid"] = uid
    _, _, body = webhook.request("POST", path, json.dumps(review).encode())
    assert json.loads(body)["response"]["uid"] == uid


def test_no_patch_with_a_deletion_whatever_is_deleted(webhook: Any) -> None:
    review = json.loads(SENT["pod-create-gpu-untolerated.mutate"])
    request = review["request"]
    request |= {"operation": "DELETE", "object": None, "oldObject": request["object"]}
    assert "patch" not in webhook.mutate(review)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/mutate/",
        "/validate/",
        "//mutate",
        "/x/../validate",
        "/Validate",
        "/%76alidate",
        "/healthz/",
        "/validate?timeout=5s",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_never_a_redirect(webhook: Any, method: str, path: str) -> None:
    status, _, _ = webhook.request(method, path, SENT["pod-delete.validate"])
    assert not 300 <= status < 400


def test_this_suite_sees_patches_and_denials(exchange_with: Callable[[str, str], Exchange]) -> None:
    answers = [exchange_with(name, path).response for name in SENT for path in ("/mutate", "/validate")]
    assert sum("patch" in answer for answer in answers) >= 2
    assert sum(not answer["allowed"] for answer in answers) >= len(UNUSABLE)
