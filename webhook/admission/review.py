"""Reads an AdmissionReview: bytes in, a `Review` out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gpugate.policies.sdk.kinds import GroupVersionKind
from gpugate.policies.sdk.request import Operation, Request
from gpugate.webhook.admission.attribution import attribute
from gpugate.webhook.admission.envelope import WireKind, WireRequest
from gpugate.webhook.admission.errors import ReviewError, UnacceptableError

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json


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
