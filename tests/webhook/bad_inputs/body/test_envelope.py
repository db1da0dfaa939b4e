"""Reviews that cannot be attributed, because they are none or their uid cannot be known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}, "spec": {"containers": []}}


def _body(review: Any, changes: dict[str, Any]) -> bytes:
    changed = {key: value for key, value in (review | changes).items() if value is not ...}
    return json.dumps(changed).encode()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"kind": ...}, "AdmissionReview", id="52-kind-missing"),
        pytest.param({"apiVersion": ...}, "AdmissionReview", id="52-apiVersion-missing"),
        pytest.param({"kind": "Review"}, "AdmissionReview", id="52-another-kind"),
        pytest.param({"kind": None}, "AdmissionReview", id="52-kind-null"),
        pytest.param({"kind": ["AdmissionReview"]}, "AdmissionReview", id="52-kind-a-list"),
        pytest.param({"apiVersion": "audit.k8s.io/v1"}, "admission.k8s.io/v1", id="52-another-group"),
        pytest.param({"apiVersion": ["admission.k8s.io/v1"]}, "admission.k8s.io/v1", id="52-apiVersion-a-list"),
        pytest.param({"apiVersion": {}}, "admission.k8s.io/v1", id="52-apiVersion-an-object"),
        pytest.param({"apiVersion": "admission.k8s.io/v2"}, "admission.k8s.io/v1", id="55-v2"),
        pytest.param({"request": ...}, "request", id="53-missing"),
        pytest.param({"request": None}, "request", id="53-null"),
        pytest.param({"request": []}, "request", id="53-list"),
        pytest.param({"request": "x"}, "request", id="53-string"),
        pytest.param({"request": {}}, "uid", id="53-empty"),
    ],
)
def test_no_review(
    refused: Callable[..., None], review: Callable[..., Any], changes: dict[str, Any], says: str
) -> None:
    refused(_body(review(POD), changes), 400, says)


@pytest.mark.parametrize(
    "uid",
    [
        pytest.param(..., id="56-missing"),
        pytest.param(None, id="56-null"),
        pytest.param("", id="56-empty"),
        pytest.param(5, id="56-number"),
        pytest.param(["a"], id="56-list"),
        pytest.param("u" * 10_000, id="56-10-KB"),
        pytest.param('a"b', id="56-quote"),
        pytest.param("a\\b", id="56-backslash"),
        pytest.param("a\nb", id="56-newline"),
        pytest.param("a b", id="56-space"),
        pytest.param("a\x00b", id="56-NUL"),
        pytest.param("\u00e4", id="56-not-ASCII"),
    ],
)
def test_uids_that_are_none(refused: Callable[..., None], review: Callable[..., Any], uid: Any) -> None:
    refused(json.dumps(review(POD, uid=uid)).encode(), 400, "request.uid")


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    "uid",
    [
        pytest.param("a", id="56-short"),
        pytest.param("A-b", id="56-upper-case"),
        pytest.param("x" * 253, id="56-longest"),
        pytest.param("~!#$%&'()*<>", id="56-odd"),
        pytest.param("00", id="56-digits"),
    ],
)
def test_uids_are_echoed_exactly(ask: Callable[..., Any], review: Callable[..., Any], path: str, uid: str) -> None:
    assert ask(path, review(POD, uid=uid), uid=uid)["uid"] == uid


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_v1beta1_is_answered_as_v1beta1(ask: Callable[..., Any], review: Callable[..., Any], path: str) -> None:
    version = "admission.k8s.io/v1beta1"
    assert ask(path, review(POD) | {"apiVersion": version}, api_version=version)["allowed"] is True


def test_v1beta1_is_denied_as_v1beta1(denied: Callable[..., None], review: Callable[..., Any]) -> None:
    version = "admission.k8s.io/v1beta1"
    denied(review(POD, operation="PATCH") | {"apiVersion": version}, 400, "operation", api_version=version)


def test_a_response_in_the_request_is_ignored(ask: Callable[..., Any], review: Callable[..., Any]) -> None:
    sent = review(POD) | {"response": {"uid": "other", "allowed": False, "patch": "W10=", "patchType": "JSONPatch"}}
    assert ask("/validate", sent)["allowed"] is True
