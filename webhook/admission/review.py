"""Decode an AdmissionReview: bytes in, a `Review` out.

ReviewError              an HTTP code and a message without content of the object
├── UnattributableError  the uid is unknown: only an HTTP error can answer
└── UnacceptableError    the uid is known: a review with that uid answers, whatever the failurePolicy

The request is checked strictly, because a member of the wrong type would change its meaning. Unknown members are ignored,
because new versions of Kubernetes add some. For text that is not JSON, the size functions count at least what a parser
reads before it stops.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json


class ReviewError(Exception):
    """A review that cannot be judged; `code` is an HTTP status, `message` says what is wrong."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class UnattributableError(ReviewError):
    """Whoever sent it is not the API server, or is broken: there is no uid to answer to."""


class UnacceptableError(ReviewError):
    """A review with a uid that cannot be judged."""

    def __init__(self, code: int, message: str, uid: str, api_version: str) -> None:
        super().__init__(code, message)
        self.uid = uid
        self.api_version = api_version


_SEPARATORS: Final = b",{["
_BRACKETS: Final = b"{[}]"
_OPENING: Final = b"["[0]
_FEW: Final = 20
_ALIKE: Final = bytes.maketrans(b"{}", b"[]")
_EVERY_BYTE: Final = bytes(range(256))
_ALL_BUT_SEPARATORS: Final = _EVERY_BYTE.translate(None, _SEPARATORS)
_ALL_BUT_SEPARATORS_AND_QUOTES: Final = _EVERY_BYTE.translate(None, _SEPARATORS + b'"')
_ALL_BUT_OPENING: Final = _EVERY_BYTE.translate(None, b"{[")
_ALL_BUT_BRACKETS_AND_QUOTES: Final = _EVERY_BYTE.translate(None, _BRACKETS + b'"')


def holds_more_than(text: bytes, nodes: int) -> bool:
    """Tell whether there are more values than `nodes`; an empty object or list counts as two."""
    # A value takes a byte, and so does what separates it from the next.
    if len(text) <= 2 * nodes or len(text.translate(None, _ALL_BUT_SEPARATORS)) < nodes:
        return False
    marks = _without_escapes(text).translate(None, _ALL_BUT_SEPARATORS_AND_QUOTES)
    return len(_outside_strings(marks, 2 * nodes)) >= nodes


def is_deeper_than(text: bytes, levels: int) -> bool:
    """Tell whether objects and lists are nested more than so many levels."""
    if len(text.translate(None, _ALL_BUT_OPENING)) <= levels:
        return False
    marks = _without_escapes(text).translate(_ALIKE, _ALL_BUT_BRACKETS_AND_QUOTES)
    left = _outside_strings(marks)
    # Most objects are gone after a few rounds, each of which takes away the innermost level; others are walked once.
    for depth in range(_FEW):
        if not left:
            return depth > levels
        left = left.replace(b"[]", b"")
    return _FEW + max(accumulate(1 if mark == _OPENING else -1 for mark in left), default=0) > levels


def _without_escapes(text: bytes) -> bytes:
    """Take out escaped backslashes and quotes, so that the quotes that are left begin and end strings."""
    return text.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in text else text


def _outside_strings(marks: bytes, most_quotes: int = -1) -> bytes:
    """Keep of a text of marks and quotes what is outside quotes; past so many quotes, everything."""
    # Two neighbouring quotes end a string and begin one: without them the rest is inside or outside as before.
    return b"".join(marks.replace(b'""', b"").split(b'"', most_quotes)[::2])


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
    """The resource an object is served as."""

    group: str
    version: str
    resource: str


class WireUser(_Wire):
    """Who made the request, after impersonation."""

    username: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class WireRequest(_Wire):
    """The `request` of an AdmissionReview.

    `kind` is the type the object is in; `requestKind` the one the user sent, before the API server converted it to
    what the webhook's rules name. Names are empty where the API server has yet to make one.
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
    if holds_more_than(body, MAX_NODES):
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
    if is_deeper_than(body, MAX_DEPTH + 1):
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


@dataclass(frozen=True, slots=True)
class Review:
    """A review that can be judged, and what its answer must repeat."""

    uid: str
    api_version: str
    request: Request


def decode(body: bytes) -> Review:
    """Read an AdmissionReview of v1 or v1beta1.

    Raises:
        UnattributableError: it is none, or its uid cannot be known.
        UnacceptableError: it has a uid, but is too large, nested too deeply, or its request makes no sense.
    """
    found = attribute(body)
    try:
        return Review(found.uid, found.api_version, _checked(found.members))
    except ValidationError as error:
        raise UnacceptableError(400, _described(error), found.uid, found.api_version) from None
    except ReviewError as error:
        raise UnacceptableError(error.code, error.message, found.uid, found.api_version) from None


def _checked(members: dict[str, Json]) -> Request:
    wire = WireRequest.model_validate(members)
    kind = _kind(wire.kind)
    judged = wire.old_object if wire.operation is Operation.DELETE else wire.object
    if wire.operation in {Operation.CREATE, Operation.UPDATE} and wire.object is None:
        raise ReviewError(400, f"request.object is missing from a {wire.operation}")
    if wire.operation is Operation.UPDATE and wire.old_object is None:
        raise ReviewError(400, "request.oldObject is missing from an UPDATE")
    if wire.operation is Operation.DELETE and judged is None:
        # The API server sends what is stored since Kubernetes 1.15; without it nobody knows what would go.
        raise ReviewError(400, "request.oldObject is missing from a DELETE")
    for member, obj in (("object", wire.object), ("oldObject", wire.old_object)):
        if obj is not None and (obj.get("kind", kind.kind), obj.get("apiVersion", kind.api_version)) != (
            kind.kind,
            kind.api_version,
        ):
            raise ReviewError(400, f"request.{member} is not of request.kind")
    metadata = _metadata(judged)
    namespace = wire.namespace or ""
    if _text(metadata, "namespace") not in {"", namespace}:
        raise ReviewError(400, "request.namespace is not the object's")
    user = wire.user
    return Request(
        kind=kind,
        operation=wire.operation,
        object=wire.object,
        old_object=wire.old_object,
        requested_kind=_kind(wire.request_kind) if wire.request_kind else None,
        subresource=wire.subresource or "",
        # The deletion of a collection comes with no name, once for each object.
        name=wire.name or _text(metadata, "name"),
        generate_name=_text(metadata, "generateName"),
        namespace=namespace,
        user=(user.username if user else None) or "",
        groups=tuple((user.groups if user else None) or ()),
        dry_run=bool(wire.dry_run),
    )


def _kind(wire: WireKind) -> GroupVersionKind:
    return GroupVersionKind(wire.group, wire.version, wire.kind)


def _metadata(obj: dict[str, Any] | None) -> dict[str, Any]:
    metadata = (obj or {}).get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _text(metadata: dict[str, Any], key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) else ""


def _described(error: ValidationError) -> str:
    """Say the first thing that is wrong and where, without the value itself."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"request.{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
