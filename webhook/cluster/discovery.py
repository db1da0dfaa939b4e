"""In which version an API server serves a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from gpugate.policies.sdk.objects import Kind
from gpugate.webhook.cluster.errors import ApiError, NotServedError, UnreachableError

if TYPE_CHECKING:
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.webhook.cluster.connection import Connection


_Shape = TypeVar("_Shape")


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
    """Name a kind as `kubectl api-resources` and RBAC do: `nodepools.karpenter.sh`, `namespaces`."""
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def resource_of(connection: Connection, gvk: GroupVersionKind) -> Kind:
    """Return the kind of objects of a type, with the plural and the scope that the server says.

    Raises:
        NotServedError: the server does not have it in this version.
        ApiError: it answered with another error.
        UnreachableError: it did not answer.
    """
    path = f"/apis/{gvk.group}/{gvk.version}" if gvk.group else f"/api/{gvk.version}"
    listed = _read(connection, path, _LISTS)
    for resource in listed.resources if listed else ():
        if resource.kind == gvk.kind and "/" not in resource.name:
            return Kind(gvk.group, (gvk.version,), gvk.kind, resource.name, resource.namespaced)
    raise NotServedError(f"the cluster does not serve {gvk.kind} in {gvk.api_version}")


def path_of(connection: Connection, kind: Kind) -> str:
    """Return the path under which all objects of a kind are listed, in the version the server prefers among ours.

    Raises:
        NotServedError: the server does not have the kind, or in other versions only.
        ApiError: it answered with another error.
        UnreachableError: it did not answer.
    """
    for version in _versions(connection, kind):
        path = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
        listed = _read(connection, path, _LISTS)
        for resource in listed.resources if listed else ():
            if resource.name == kind.plural and {"list", "watch"} <= set(resource.verbs):
                return f"{path}/{kind.plural}"
    raise NotServedError(f"the cluster does not serve {resource_name(kind)}")


def _versions(connection: Connection, kind: Kind) -> list[str]:
    """Return the versions that the server and we know, the preferred one first, then the newest.

    A kind with the one version `*` is known in every version.
    """
    newest = list(reversed(kind.versions))
    if not kind.group:
        return newest
    group = _read(connection, f"/apis/{kind.group}", _GROUPS)
    if group is None:
        return []
    served = [each.version for each in group.versions]
    newest = served if newest == ["*"] else newest
    preferred = group.preferred_version.version if group.preferred_version else ""
    known = sorted((v for v in newest if v in served), key=lambda version: version != preferred)
    if not known:
        name, ours = resource_name(kind), " or ".join(kind.versions)
        raise NotServedError(f"the cluster does not serve {name} in {ours}")
    return known


def _read(connection: Connection, path: str, decoder: msgspec.json.Decoder[_Shape]) -> _Shape | None:
    """Return what is at a path; None when nothing is."""
    try:
        return decoder.decode(connection.read(path, {}))
    except ApiError as error:
        if error.code == 404:
            return None
        raise
    except msgspec.DecodeError as error:
        raise UnreachableError(f"{connection.host}{path} is no answer of an API server: {error}") from None
