"""Discover the version and the path under which an API server serves a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from gpugate.policies.engine.json_text import read_json
from gpugate.policies.sdk.objects import Kind
from gpugate.webhook.cluster.errors import ApiError, NotServedError, UnreachableError

if TYPE_CHECKING:
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.webhook.cluster.connection import Connection


_Decoded = TypeVar("_Decoded")


class _Version(msgspec.Struct):
    version: str


class _Group(msgspec.Struct, rename="camel"):
    versions: list[_Version]
    preferred_version: _Version | None = None


class _Resource(msgspec.Struct):
    name: str
    kind: str = ""
    namespaced: bool = True
    verbs: list[str] = []


class _Resources(msgspec.Struct):
    resources: list[_Resource]


_GROUPS: Final = msgspec.json.Decoder(_Group)
_LISTS: Final = msgspec.json.Decoder(_Resources)


def resource_name(kind: Kind) -> str:
    """Return the resource of a kind as `kubectl api-resources` and RBAC name it: `nodepools.karpenter.sh`."""
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def resource_of(connection: Connection, gvk: GroupVersionKind) -> Kind:
    """Return the kind of a type, with the plural and the scope from the API server.

    Raises:
        NotServedError: the server does not serve the type in this version.
        ApiError: the server returned another error.
        UnreachableError: the response is missing.
    """
    path = f"/apis/{gvk.group}/{gvk.version}" if gvk.group else f"/api/{gvk.version}"
    document = _read(connection, path, _LISTS)
    for resource in document.resources if document else ():
        if resource.kind == gvk.kind and "/" not in resource.name:
            return Kind(gvk.group, (gvk.version,), gvk.kind, resource.name, resource.namespaced)
    raise NotServedError(f"the cluster does not serve {gvk.kind} in {gvk.api_version}")


def path_of(connection: Connection, kind: Kind) -> str:
    """Return the path that lists all objects of a kind, in the server's preferred version among the supported ones.

    Raises:
        NotServedError: the server does not serve the kind, or only in unsupported versions.
        ApiError: the server returned another error.
        UnreachableError: the response is missing.
    """
    for version in _versions(connection, kind):
        path = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
        document = _read(connection, path, _LISTS)
        for resource in document.resources if document else ():
            if resource.name == kind.plural and {"list", "watch"} <= set(resource.verbs):
                return f"{path}/{kind.plural}"
    raise NotServedError(f"the cluster does not serve {resource_name(kind)}")


def _versions(connection: Connection, kind: Kind) -> list[str]:
    """Return the versions that both the server and gpugate support: the preferred version first, then the newest.

    A kind with the only version `*` is supported in every version.
    """
    candidates = list(reversed(kind.versions))
    if not kind.group:
        return candidates
    group = _read(connection, f"/apis/{kind.group}", _GROUPS)
    if group is None:
        return []
    served = [version.version for version in group.versions]
    candidates = served if candidates == ["*"] else candidates
    preferred = group.preferred_version.version if group.preferred_version else ""
    known = sorted((v for v in candidates if v in served), key=lambda version: version != preferred)
    if not known:
        name, supported = resource_name(kind), " or ".join(kind.versions)
        raise NotServedError(f"the cluster does not serve {name} in {supported}")
    return known


def _read(connection: Connection, path: str, decoder: msgspec.json.Decoder[_Decoded]) -> _Decoded | None:
    """Read and decode a path; None if it does not exist."""
    try:
        return read_json(decoder.decode, connection.read(path, {}))
    except ApiError as error:
        if error.code == 404:
            return None
        raise
    except msgspec.DecodeError as error:
        raise UnreachableError(f"{connection.host}{path} is not a response of an API server: {error}") from None
