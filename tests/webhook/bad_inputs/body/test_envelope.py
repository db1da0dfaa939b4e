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
        pytest.param({"kind": ...}, "AdmissionReview", id="kind-missing"),
        pytest.param({"apiVersion": ...}, "AdmissionReview", id="apiVersion-missing"),
        pytest.param({"kind": "Review"}, "AdmissionReview", id="another-kind"),
        pytest.param({"kind": None}, "AdmissionReview", id="kind-null"),
        pytest.param({"kind": ["AdmissionReview"]}, "AdmissionReview", id="kind-a-list"),
        pytest.param({"apiVersion": "audit.k8s.io/v1"}, "admission.k8s.io/v1", id="another-group"),
        pytest.param({"apiVersion": ["admission.k8s.io/v1"]}, "admission.k8s.io/v1", id="apiVersion-a-list"),
        pytest.param({"apiVersion": {}}, "admission.k8s.io/v1", id="apiVersion-an-object"),
        pytest.param({"apiVersion": "admission.k8s.io/v2"}, "admission.k8s.io/v1", id="v2"),
        pytest.param({"request": ...}, "request", id="missing"),
        pytest.param({"request": None}, "request", id="null"),
        pytest.param({"request": []}, "request", id="list"),
        pytest.param({"request": "x"}, "request", id="string"),
        pytest.param({"request": {}}, "uid", id="empty"),
    ],
)
def test_no_review(
    refused: Callable[..., None], review: Callable[..., Any], changes: dict[str, Any], says: str
) -> None:
    refused(_body(review(POD), changes), 400, says)


@pytest.mark.parametrize(
    "uid",
    [
        pytest.param(..., id="missing"),
        pytest.param(None, id="null"),
        pytest.param("", id="empty"),
        pytest.param(5, id="number"),
        pytest.param(["a"], id="list"),
        pytest.param("u" * 10_000, id="10-KB"),
        pytest.param('a"b', id="quote"),
        pytest.param("a\\b", id="backslash"),
        pytest.param("a\nb", id="newline"),
        pytest.param("a b", id="space"),
        pytest.param("a\x00b", id="NUL"),
        pytest.param("\u00e4", id="not-ASCII"),
    ],
)
def test_uids_that_are_none(refused: Callable[..., None], review: Callable[..., Any], uid: Any) -> None:
    refused(json.dumps(review(POD, uid=uid)).encode(), 400, "request.uid")


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    "uid",
    [
        pytest.param("a", id="short"),
        pytest.param("A-b", id="upper-case"),
        pytest.param("x" * 253, id="longest"),
        pytest.param("~!#$%&'()*<>", id="odd"),
        pytest.param("00", id="digits"),
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
