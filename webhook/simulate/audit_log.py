"""Read the requests of an API server's audit log: one `audit.k8s.io/v1` Event in JSON on each line, possibly compressed by gzip.

Sources: Kubernetes v1.36 `staging/src/k8s.io/apiserver/pkg/apis/audit/v1/types.go` (`requestObject` is the object as it was sent,
before defaulting and admission; the API server writes it from the level Request on, and `responseObject` from RequestResponse
on), and `pkg/endpoints/handlers` (the body of a PATCH is the patch).
"""

from __future__ import annotations

import datetime as dt
import gzip
import zlib
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from gpugate.policies.engine.json_text import read_json
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request, kind_of_resource
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

# The API server accepts requests up to 3 MiB; an Event contains the object twice.
MAX_LINE: Final = 8 << 20
_MAGIC: Final = b"\x1f\x8b"
_GROUP: Final = "audit.k8s.io/"
_OPERATIONS: Final = {
    "create": Operation.CREATE,
    "update": Operation.UPDATE,
    "patch": Operation.UPDATE,
}
_ERRORS: Final = 400
_DENIED_BY_WEBHOOK: Final = "admission webhook "


class _User(msgspec.Struct):
    username: str = ""
    groups: tuple[str, ...] = ()


class _Reference(msgspec.Struct, rename="camel"):
    api_group: str = ""
    api_version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Event(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    stage: str = ""
    level: str = ""
    verb: str = ""
    request_uri: str = msgspec.field(default="", name="requestURI")
    user: _User = msgspec.field(default_factory=_User)
    object_ref: _Reference | None = None
    response_status: _Status | None = None
    request_object: dict[str, Any] | None = None
    response_object: dict[str, Any] | None = None
    request_received_timestamp: Annotated[dt.datetime, msgspec.Meta(tz=True)] | None = None


_DECODER: Final = msgspec.json.Decoder(_Event)


class Recorded(Struct, frozen=True):
    """A recorded request; its old object is unknown unless the log has an earlier state of the object.

    Attributes:
        time: when the API server received it.
        request: the request.
        written: whether the API server stored the object, which it does not if a webhook denies the request.
    """

    time: dt.datetime | None
    request: Request
    written: bool = True


class Passed(Struct, frozen=True):
    """A line that is no request to evaluate.

    Attributes:
        reason: why.
        counts: whether it is a request that admission saw, so that the simulation misses it.
    """

    reason: str
    counts: bool = True


def start_of(path: Path) -> dt.datetime | None:
    """Return the time of the first request in an audit log; None if the file is not an audit log.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        with _opened(path) as lines:
            event = read_json(_DECODER.decode, lines.readline(MAX_LINE))
    except (EOFError, gzip.BadGzipFile, zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None
    if event.kind != "Event" or not event.api_version.startswith(_GROUP):
        return None
    return event.request_received_timestamp or dt.datetime.min.replace(tzinfo=dt.UTC)


def read_audit_log(path: Path) -> Iterator[Recorded | Passed]:
    """Yield what each line is.

    Raises:
        OSError: the file cannot be read.
    """
    with _opened(path) as lines:
        try:
            while line := lines.readline(MAX_LINE):
                if not line.endswith(b"\n") and len(line) == MAX_LINE:
                    yield Passed(f"the line is longer than {MAX_LINE >> 20} MiB")
                    while (remainder := lines.readline(MAX_LINE)) and not remainder.endswith(b"\n"):
                        pass
                elif line.strip():
                    yield _read(line)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            yield Passed("the compressed file is damaged from here on")


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        is_compressed = file.read(2) == _MAGIC
    return gzip.open(path, "rb") if is_compressed else path.open("rb")  # type: ignore[return-value]  # a GzipFile reads bytes


def _read(line: bytes) -> Recorded | Passed:
    try:
        event = read_json(_DECODER.decode, line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Passed("the line is not an Event of the audit log")
    if event.kind != "Event" or not event.api_version.startswith(_GROUP):
        return Passed("the line is not an Event of the audit log")
    operation, reference = _OPERATIONS.get(event.verb), event.object_ref
    if event.stage not in {"ResponseComplete", ""} or reference is None:
        return Passed("not the end of a request for an object", counts=False)
    if operation is None:
        deletes = event.verb in {"delete", "deletecollection"}
        reason = "deletions: the log does not contain the deleted object" if deletes else "not a write"
        return Passed(reason, counts=deletes)
    return _unseen(event) or _request(event, operation, reference)


def _unseen(event: _Event) -> Passed | None:
    """Return why a request has no effect that a webhook decides about."""
    if "dryRun=All" in event.request_uri:
        return Passed("dry run", counts=False)
    status = event.response_status or _Status()
    if status.code >= _ERRORS and not status.message.startswith(_DENIED_BY_WEBHOOK):
        return Passed("refused before or after admission", counts=False)
    return None


def _request(event: _Event, operation: Operation, reference: _Reference) -> Recorded | Passed:
    obj = event.request_object
    if event.verb == "patch":
        obj = event.response_object
        if obj is None or obj.get("kind") == "Status":
            return Passed("the log contains the patch only: log these resources at level RequestResponse")
    if obj is None:
        return Passed("the log contains no object: log these resources at level Request")
    version, kind = _text(obj.get("apiVersion")), _text(obj.get("kind"))
    if not version or not kind:
        return Passed("the object has no kind")
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    own, stored = GroupVersionKind.of(version, kind), None
    if reference.subresource:
        stored = kind_of_resource(reference.api_group, reference.api_version, reference.resource)
    request = Request(
        kind=own,
        operation=operation,
        object=obj,
        subresource=reference.subresource,
        parent=stored if stored != own else None,
        name=reference.name or _text(metadata.get("name")),
        generate_name=_text(metadata.get("generateName")),
        namespace=reference.namespace or _text(metadata.get("namespace")),
        user=event.user.username,
        groups=event.user.groups,
    )
    status = event.response_status or _Status()
    return Recorded(event.request_received_timestamp, request, status.code < _ERRORS)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
