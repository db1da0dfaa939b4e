"""Lists all objects of a kind: pages, and what to do when one is no longer to be had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import orjson

from gpugate.webhook.cluster.errors import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.cluster.projection import StoredField

PAGE: Final = 500
# What the cluster holds now. client-go begins with "0", whatever the server has in memory, to spare etcd when thousands
# of kubelets start; it is answered with all objects at once, whatever the limit. We are few, and 15,000 ReplicaSets in
# one answer are 105 MB, so we ask for pages; since Kubernetes 1.34 these come from memory too.
NEWEST: Final = ""


class _Metadata(msgspec.Struct, rename={"resource_version": "resourceVersion", "token": "continue"}):
    resource_version: str = ""
    token: str = ""


class _Page(msgspec.Struct):
    metadata: _Metadata
    # Raw: decoded one by one and cut down at once, objects need a sixth of the memory.
    items: list[msgspec.Raw] | None = None


_PAGES: Final = msgspec.json.Decoder(_Page)


def list_all(
    connection: Connection, path: str, revision: str, project: Callable[[dict[str, Any]], StoredField]
) -> tuple[list[StoredField], str]:
    """Return every object at a path, projected, and the resource version to watch from.

    `revision` is the oldest that will do, or `NEWEST`. A page that is no longer to be had (the API server
    compacts its history every five minutes) starts the list again, without pages so that it comes to an end, as
    client-go's pager does (k8s.io/client-go tools/pager, v0.36).

    Raises:
        ApiError: the server answered with an error.
        UnreachableError: it did not answer, or with something else than a list.
    """
    try:
        return _list(connection, path, _first(revision, PAGE), project)
    except _ExpiredPageError:
        return _list(connection, path, _first(revision, 0), project)


class _ExpiredPageError(Exception):
    pass


def _first(revision: str, limit: int) -> dict[str, str]:
    parameters = {"limit": str(limit)} if limit else {}
    if revision != NEWEST:
        # With a limit the default would be "exactly this version", which may be gone.
        parameters |= {"resourceVersion": revision, "resourceVersionMatch": "NotOlderThan"}
    return parameters


def _list(
    connection: Connection, path: str, parameters: dict[str, str], project: Callable[[dict[str, Any]], StoredField]
) -> tuple[list[StoredField], str]:
    found: list[StoredField] = []
    while True:
        page = _page(connection, path, parameters)
        found += [project(orjson.loads(memoryview(item))) for item in page.items or ()]
        if not page.metadata.token:
            return found, page.metadata.resource_version
        parameters = {"limit": str(PAGE), "continue": page.metadata.token}


def _page(connection: Connection, path: str, parameters: dict[str, str]) -> _Page:
    try:
        return _PAGES.decode(connection.read(path, parameters))
    except ApiError as error:
        if error.expired and "continue" in parameters:
            raise _ExpiredPageError from None
        raise
    except msgspec.DecodeError as error:
        raise UnreachableError(f"{connection.host}{path} is no answer of an API server: {error}") from None
