"""Verifies the answer to a review as the API server does, and says what is wrong with it.

Sources: client-go rest/request.go (`transformResponse`, `Into`) and `k8s.io/apiserver`
pkg/admission/plugin/webhook/request/admissionreview.go (`VerifyAdmissionResponse`), v1.36. A review of v1beta1 is
verified less: neither its uid nor its type, and a patchType is not asked for. The only patchType is JSONPatch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from api_server import wire
from api_server.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]
V1 = "admission.k8s.io/v1"
_PART = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf'\s*{_PART}(/{_PART})?\s*(;\s*{_PART}=({_PART}|"[^"]*")\s*)*;?\s*')


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back of one call: header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """An answer that was verified.

    Attributes:
        allowed: whether the webhook lets the request through.
        status: what it says where it does not.
        patch: as it was sent, empty where there is none.
        warnings: as they were sent.
        audit_annotations: as they were sent.
    """

    allowed: bool
    status: Json | None = None
    patch: bytes = b""
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)


def verify(answer: HttpAnswer, uid: str, version: str, *, mutating: bool) -> Response:
    """Read the answer to a review.

    Args:
        answer: what came back.
        uid: of the request.
        version: the apiVersion of the request.
        mutating: whether a patch is allowed.

    Raises:
        CallError: the API server would not use it; says why.
    """
    response = _response(answer, uid, version)
    patch = wire.base64_bytes(response, "patch")
    patch_type = wire.text_or_none(response, "patchType")
    if version == V1:
        _check_patch_members(patch, patch_type, mutating=mutating)
    return Response(
        allowed=wire.boolean(response, "allowed"),
        status=wire.status(response),
        patch=patch if mutating else b"",
        warnings=wire.texts(response, "warnings"),
        audit_annotations=wire.text_map(response, "auditAnnotations"),
    )


def _response(answer: HttpAnswer, uid: str, version: str) -> Json:
    envelope = _envelope(answer)
    response = envelope.get("response")
    if response is None:
        raise CallError("received invalid webhook response: webhook response was absent")
    if not isinstance(response, dict):
        raise CallError("failed to call webhook: response is not an object")
    answered = wire.text_or_none(response, "uid") or ""
    if version == V1:
        if answered != uid:
            raise CallError(f'received invalid webhook response: expected response.uid="{uid}", got "{answered}"')
        found = (envelope.get("apiVersion"), envelope.get("kind"))
        if found != (version, "AdmissionReview"):
            raise CallError(
                f"received invalid webhook response: expected webhook response of {version}, "
                f"Kind=AdmissionReview, got {found[0] or ''}, Kind={found[1] or ''}"
            )
    return response


def _envelope(answer: HttpAnswer) -> Json:
    if not 200 <= answer.status <= 206:
        raise CallError(f"failed to call webhook: HTTP status {answer.status}: {answer.body[:200]!r}")
    media_type = answer.headers.get("content-type", "")
    if media_type and not _MEDIA_TYPE.fullmatch(media_type):
        raise CallError(f"failed to call webhook: mime: cannot parse {media_type!r}")
    if not answer.body:
        raise CallError(
            f"failed to call webhook: 0-length response with status code: {answer.status} and content type: {media_type}"
        )
    envelope = wire.decode(answer.body)
    # A Success is no answer either: it has no response.
    if envelope.get("kind") == "Status" and envelope.get("status") != "Success":
        raise CallError(f"failed to call webhook: {envelope.get('message') or 'unknown'}")
    return envelope


def _check_patch_members(patch: bytes, patch_type: str | None, *, mutating: bool) -> None:
    prefix = "received invalid webhook response: "
    if not mutating:
        if patch or patch_type is not None:
            raise CallError(f"{prefix}validating webhook may not return response.patch or its type")
    elif patch and patch_type is None:
        raise CallError(f"{prefix}webhook returned response.patch but not response.patchType")
    elif patch_type is not None and not patch:
        raise CallError(f"{prefix}webhook returned response.patchType but not response.patch")
    elif patch_type not in {None, "JSONPatch"}:
        raise CallError(f"{prefix}webhook returned invalid response.patchType of {patch_type!r}")
