"""Reads the envelope of an AdmissionReview: which uid an answer goes to, and the request as it stands on the wire."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

import orjson

from gpugate.webhook.admission import json_size
from gpugate.webhook.admission.envelope import API_VERSIONS, KIND
from gpugate.webhook.admission.errors import ReviewError, UnacceptableError, UnattributableError

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

# The worst the API server sends is about 27 MiB: 3 MiB of `<`, each escaped in six bytes, and the stored object
# (`k8s.io/apiserver` pkg/server/config.go MaxRequestBodyBytes, v1.36).
MAX_BODY: Final = 32 * 1024 * 1024
# How much of a body is looked at for a uid when the rest is not read.
HEAD: Final = 512
# The deepest object of the kinds judged here has some 20 levels.
MAX_DEPTH: Final = 200
# A Pod of 64 KB has some 5,000, so the update of an object of 1.5 MiB, the most that etcd stores by default, some 240,000.
# Two bytes on the wire become some hundred in memory, and half a million values take 90 ms to read.
MAX_NODES: Final = 250_000
_TOO_DEEP: Final = f"the request is nested more than {MAX_DEPTH} levels deep"

# The API server writes these members first and in this order (`k8s.io/api` admission/v1 types.go, v0.36).
_HEAD = re.compile(
    rb'\s*\{\s*"kind"\s*:\s*"AdmissionReview"\s*,\s*"apiVersion"\s*:\s*"(admission\.k8s\.io/v1(?:beta1)?)"\s*,'
    rb'\s*"request"\s*:\s*\{\s*"uid"\s*:\s*"([!#-\[\]-~]{1,253})"'
)
_UID = re.compile(r"[!#-\[\]-~]{1,253}")


@dataclass(frozen=True, slots=True)
class Attributed:
    """A request whose uid is known, and its members unchecked."""

    uid: str
    api_version: str
    members: dict[str, Json]


def attribute(body: bytes) -> Attributed:
    """Read the envelope.

    Raises:
        UnattributableError: it is no AdmissionReview, or its uid cannot be known.
        UnacceptableError: it has a uid, but is too large, holds too much, is nested too deeply or broken after its
            beginning.
    """
    if len(body) > MAX_BODY:
        raise too_large(body[:HEAD])
    if json_size.holds_more_than(body, MAX_NODES):
        raise attributed_by_head(413, f"the review holds more than {MAX_NODES:,} values", body)
    envelope = _parse(body)
    if not isinstance(envelope, dict):
        _refuse("the body is not an object: an AdmissionReview is expected")
    api_version, request = envelope.get("apiVersion"), envelope.get("request")
    if envelope.get("kind") != KIND or not isinstance(api_version, str) or api_version not in API_VERSIONS:
        _refuse("the body is no AdmissionReview of admission.k8s.io/v1 or v1beta1")
    if not isinstance(request, dict):
        _refuse("the AdmissionReview has no request")
    uid = request.get("uid")
    if not isinstance(uid, str) or not _UID.fullmatch(uid):
        _refuse("request.uid must be 1 to 253 printable ASCII characters without quotes, backslashes and spaces")
    # The request is inside the envelope.
    if json_size.is_deeper_than(body, MAX_DEPTH + 1):
        raise UnacceptableError(413, _TOO_DEEP, uid, api_version)
    return Attributed(uid, api_version, request)


def too_large(head: bytes) -> ReviewError:
    """Say that a body is larger than `MAX_BODY`; `head` is its first `HEAD` bytes."""
    return attributed_by_head(413, f"the review is larger than {MAX_BODY // 1024 // 1024} MiB", head)


def attributed_by_head(code: int, message: str, head: bytes) -> ReviewError:
    """Attribute an error to a review that cannot be read, where its first bytes name the uid."""
    found = _HEAD.match(head[:HEAD])
    if found is None:
        return UnattributableError(code, message)
    return UnacceptableError(code, message, found[2].decode("ascii"), found[1].decode("ascii"))


def _parse(body: bytes) -> Json:
    try:
        value: Json = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if not body:
            raise UnattributableError(400, "the body is empty: an AdmissionReview is expected") from None
        if error.msg.startswith("depth limit"):
            raise attributed_by_head(413, _TOO_DEEP, body) from None
        raise attributed_by_head(400, f"the body is not JSON in UTF-8: {error.msg} at {error.pos}", body) from None
    return value


def _refuse(message: str) -> NoReturn:
    raise UnattributableError(400, message)
