"""Takes an installation's webhook configurations away, so that nothing waits for a webhook that is gone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from gpugate.webhook.cluster.errors import ApiError, CallError
from gpugate.webhook.operate.installation import both, is_ours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Configuration, Names


class End(Enum):
    """What became of an object."""

    DELETED = "deleted"
    ABSENT = "was not there"
    FOREIGN = "is not gpugate's: it has no label app.kubernetes.io/name: gpugate"
    FAILED = "could not be deleted"


@dataclass(frozen=True, slots=True)
class Removed:
    """An object, and what became of it; `reason` says why it could not be deleted."""

    what: str
    end: End
    reason: str = ""

    @property
    def gone(self) -> bool:
        """Whether there is none now."""
        return self.end in {End.DELETED, End.ABSENT}


def remove_configurations(connection: Connection, name: str) -> Sequence[Removed]:
    """Delete both, if they are ours; one that fails does not keep the other."""
    return [_configuration(connection, each) for each in both(name)]


def remove_what_the_keeper_made(connection: Connection, names: Names) -> Sequence[Removed]:
    """Delete the certificate Secret and the Lease, which no chart knows of."""
    inside = f"namespaces/{names.namespace}"
    return [
        _object(connection, f"/api/v1/{inside}/secrets/{names.secret}", f"Secret {names.namespace}/{names.secret}"),
        _object(
            connection,
            f"/apis/coordination.k8s.io/v1/{inside}/leases/{names.lease}",
            f"Lease {names.namespace}/{names.lease}",
        ),
    ]


def _configuration(connection: Connection, configuration: Configuration) -> Removed:
    try:
        found = configuration.read(connection)
        if found is None:
            return Removed(str(configuration), End.ABSENT)
        if not is_ours(found):
            return Removed(str(configuration), End.FOREIGN)
        there = configuration.delete(connection)
    except CallError as error:
        return Removed(str(configuration), End.FAILED, str(error))
    return Removed(str(configuration), End.DELETED if there else End.ABSENT)


def _object(connection: Connection, path: str, what: str) -> Removed:
    try:
        connection.delete(path)
    except ApiError as error:
        return Removed(what, End.ABSENT) if error.code == 404 else Removed(what, End.FAILED, str(error))
    except CallError as error:
        return Removed(what, End.FAILED, str(error))
    return Removed(what, End.DELETED)
