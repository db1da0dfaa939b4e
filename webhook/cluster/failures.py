"""Turns what the API server answers about one object into the failures that `certs` knows, in words for operators."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from gpugate.certs.protocols import ChangedMeanwhile, ClusterFailure
from gpugate.webhook.cluster.errors import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.cluster.place import Place

# As RBAC names them.
Verb: TypeAlias = Literal["get", "watch", "create", "update", "patch"]
_READING = frozenset({"get", "watch"})


@contextmanager
def failing_as_cluster(verb: Verb, place: Place) -> Iterator[None]:
    """Explain what goes wrong in one call.

    Raises:
        ChangedMeanwhile: what was to be written is not as it was read, or is there, or is gone.
        ClusterFailure: anything else; after a write that had no answer it says that nobody knows.
    """
    try:
        yield
    except ApiError as error:
        if verb not in _READING and error.code in ({409} if verb == "create" else {404, 409, 410}):
            raise ChangedMeanwhile(f"{place} changed meanwhile: {error}") from None
        raise ClusterFailure(why(error, verb, place)) from None
    except UnreachableError as error:
        doubt = "" if verb in _READING else f"; nobody knows whether {place} was written, so it must be read again"
        raise ClusterFailure(f"{error}{doubt}") from None
    except msgspec.DecodeError:
        raise ClusterFailure(f"the answer to {verb} {place} is none of an API server") from None


def why(error: ApiError, verb: Verb, place: Place) -> str:
    """Say why a call was refused, and what to look at.

    A 403 is no matter of rights when a quota, an admission plugin or a webhook refuses, or the namespace is being
    deleted. RBAC says "cannot VERB resource" (k8s.io/apiserver pkg/endpoints/handlers/responsewriters errors.go, v0.36).
    """
    if error.code == 403 and f"cannot {verb} resource" in error.message:
        return (
            f"gpugate may not {verb} {place}: its ServiceAccount needs the verb {verb!r} on {place.resource}, which the "
            f"chart grants (rbac.create), as does `gpugate registration`; the API server says: {error.message}"
        )
    return f"{verb} {place}: {error}"


def read_or_none(connection: Connection, place: Place) -> bytes | None:
    """Return an object as the API server has it now, None if there is none.

    Raises:
        ApiError: the answer is another error.
        UnreachableError: there is no answer, or it broke off.
    """
    try:
        return connection.read(place.path, {})
    except ApiError as error:
        if error.code == 404:
            return None
        raise
