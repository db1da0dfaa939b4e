"""Decode an AdmissionReview: bytes in, a `Review` out.

ReviewError              an HTTP code and a message without content of the object
├── UnattributableError  the uid is unknown: the response is an HTTP error
└── UnacceptableError    the uid is known: the response is a review with that uid, under any failurePolicy

The request is checked strictly, because a member of the wrong type would change its meaning. Unknown members are ignored,
because new versions of Kubernetes add some. For text that is not JSON, the size functions count at least what a parser
reads before it stops.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gpugate.policies.engine.json_text import MAX_DEPTH, has_more_values_than, is_deeper_than
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request, kind_of_resource

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json


class ReviewError(Exception):
    """A review that cannot be evaluated; `code` is an HTTP status, `message` states the cause."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class UnattributableError(ReviewError):
    """A review without a valid uid: the client is not the API server, or sends invalid data."""


class UnacceptableError(ReviewError):
    """A review with a valid uid that cannot be evaluated."""

    def __init__(self, code: int, message: str, uid: str, api_version: str) -> None:
        super().__init__(code, message)
        self.uid = uid
        self.api_version = api_version


API_VERSIONS = frozenset({"admission.k8s.io/v1", "admission.k8s.io/v1beta1"})
KIND = "AdmissionReview"


class _Wire(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class WireKind(_Wire):
    """The type of an object; the core group is the empty string."""

    group: str
    version: str
    kind: str


class WireResource(_Wire):
    """The resource through which the API server serves an object."""

    group: str
    version: str
    resource: str


class WireUser(_Wire):
    """The user of the request, after impersonation."""

    username: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class WireRequest(_Wire):
    """The `request` of an AdmissionReview.

    `kind` is the type of the object. `requestKind` is the type that the user sent, before the API server converted it to
    a type in the webhook's rules. A name is empty until the API server has generated it.
    """

    kind: WireKind
    resource: WireResource
    operation: Annotated[Operation, Field(strict=False)]
    request_kind: Annotated[WireKind | None, Field(alias="requestKind")] = None
    subresource: Annotated[str | None, Field(alias="subResource")] = None
    name: str | None = None
    namespace: str | None = None
    user: Annotated[WireUser | None, Field(alias="userInfo")] = None
    object: dict[str, Any] | None = None
    old_object: Annotated[dict[str, Any] | None, Field(alias="oldObject")] = None
    dry_run: Annotated[bool | None, Field(alias="dryRun")] = None


# The largest body from the API server is about 27 MiB: 3 MiB of `<`, each escaped in six bytes, and the stored object
# (`k8s.io/apiserver` pkg/server/config.go MaxRequestBodyBytes, v1.36).
MAX_BODY: Final = 32 * 1024 * 1024
# The bytes of a body that are searched for a uid when the rest is not read.
HEAD: Final = 512
# A Pod of 64 KB has about 5,000 values, so the update of an object of 1.5 MiB, etcd's default limit, has about 240,000.
# Two bytes on the wire become about a hundred in memory, and half a million values take 90 ms to read.
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
    """A request with a known uid and unchecked members."""

    uid: str
    api_version: str
    members: dict[str, Json]


def attribute(body: bytes) -> Attributed:
    """Read the envelope.

    Raises:
        UnattributableError: the body is not an AdmissionReview, or has no valid uid.
        UnacceptableError: the review has a uid, but is too large, has too many values, is nested too deeply or is
            invalid after its first members.
    """
    if len(body) > MAX_BODY:
        raise too_large(body[:HEAD])
    if has_more_values_than(body, MAX_NODES):
        raise attributed_by_head(413, f"the review has more than {MAX_NODES:,} values", body)
    envelope = _parse(body)
    if not isinstance(envelope, dict):
        _refuse("the body is not an object: an AdmissionReview is expected")
    api_version, request = envelope.get("apiVersion"), envelope.get("request")
    if envelope.get("kind") != KIND or not isinstance(api_version, str) or api_version not in API_VERSIONS:
        _refuse("the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1")
    if not isinstance(request, dict):
        _refuse("the AdmissionReview has no request")
    uid = request.get("uid")
    if not isinstance(uid, str) or not _UID.fullmatch(uid):
        _refuse("request.uid must be 1 to 253 printable ASCII characters without quotes, backslashes and spaces")
    # The envelope adds one level to those of the request.
    if is_deeper_than(body, MAX_DEPTH + 1):
        raise UnacceptableError(413, _TOO_DEEP, uid, api_version)
    return Attributed(uid, api_version, request)


def too_large(head: bytes) -> ReviewError:
    """Return the error for a body larger than `MAX_BODY`; `head` is its first `HEAD` bytes."""
    return attributed_by_head(413, f"the review is larger than {MAX_BODY // 1024 // 1024} MiB", head)


def attributed_by_head(code: int, message: str, head: bytes) -> ReviewError:
    """Return an error for an unreadable review, with the uid if the first bytes of the review contain it."""
    match = _HEAD.match(head[:HEAD])
    if match is None:
        return UnattributableError(code, message)
    return UnacceptableError(code, message, match[2].decode("ascii"), match[1].decode("ascii"))


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


@dataclass(frozen=True, slots=True)
class Review:
    """A review that can be evaluated, with the members that its response repeats."""

    uid: str
    api_version: str
    request: Request


def decode(body: bytes) -> Review:
    """Decode an AdmissionReview of v1 or v1beta1.

    Raises:
        UnattributableError: the body is not an AdmissionReview, or has no valid uid.
        UnacceptableError: the review has a uid, but is too large, is nested too deeply or contains an invalid request.
    """
    attributed = attribute(body)
    try:
        return Review(attributed.uid, attributed.api_version, _check_request(attributed.members))
    except ValidationError as error:
        raise UnacceptableError(400, _describe_error(error), attributed.uid, attributed.api_version) from None
    except ReviewError as error:
        raise UnacceptableError(error.code, error.message, attributed.uid, attributed.api_version) from None


def _check_request(members: dict[str, Json]) -> Request:
    wire = WireRequest.model_validate(members)
    kind = _kind(wire.kind)
    target = wire.old_object if wire.operation is Operation.DELETE else wire.object
    if wire.operation in {Operation.CREATE, Operation.UPDATE} and wire.object is None:
        raise ReviewError(400, f"request.object is missing from a {wire.operation}")
    if wire.operation is Operation.UPDATE and wire.old_object is None:
        raise ReviewError(400, "request.oldObject is missing from an UPDATE")
    if wire.operation is Operation.DELETE and target is None:
        # The API server sends the stored object since Kubernetes 1.15. Without it, the deleted object is unknown.
        raise ReviewError(400, "request.oldObject is missing from a DELETE")
    for member, obj in (("object", wire.object), ("oldObject", wire.old_object)):
        if obj is not None and (obj.get("kind", kind.kind), obj.get("apiVersion", kind.api_version)) != (
            kind.kind,
            kind.api_version,
        ):
            raise ReviewError(400, f"request.{member} is not of request.kind")
    metadata = _metadata(target)
    namespace = wire.namespace or ""
    if _text(metadata, "namespace") not in {"", namespace}:
        raise ReviewError(400, "request.namespace differs from the namespace of the object")
    user = wire.user
    return Request(
        kind=kind,
        operation=wire.operation,
        object=wire.object,
        old_object=wire.old_object,
        requested_kind=_kind(wire.request_kind) if wire.request_kind else None,
        subresource=wire.subresource or "",
        parent=_parent(wire, kind),
        # A deletecollection request has no name; the API server sends one review for each object.
        name=wire.name or _text(metadata, "name"),
        generate_name=_text(metadata, "generateName"),
        namespace=namespace,
        user=(user.username if user else None) or "",
        groups=tuple((user.groups if user else None) or ()),
        dry_run=bool(wire.dry_run),
    )


def _kind(wire: WireKind) -> GroupVersionKind:
    return GroupVersionKind(wire.group, wire.version, wire.kind)


def _parent(wire: WireRequest, kind: GroupVersionKind) -> GroupVersionKind | None:
    """Return the type of the stored object where that of the subresource's object differs and policies know it."""
    if not wire.subresource:
        return None
    stored = kind_of_resource(wire.resource.group, wire.resource.version, wire.resource.resource)
    return stored if stored != kind else None


def _metadata(obj: dict[str, Any] | None) -> dict[str, Any]:
    metadata = (obj or {}).get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _text(metadata: dict[str, Any], key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) else ""


def _describe_error(error: ValidationError) -> str:
    """Return the first validation error and its path, without the value."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"request.{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
