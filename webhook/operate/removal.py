"""Delete the webhook configurations of an installation, so that no request waits for a removed webhook."""

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
    """The result of deleting an object."""

    DELETED = "deleted"
    ABSENT = "did not exist"
    FOREIGN = "does not belong to gpugate: missing label app.kubernetes.io/name: gpugate"
    FAILED = "could not be deleted"


@dataclass(frozen=True, slots=True)
class Removed:
    """An object and the result of deleting it; `reason` states why it could not be deleted."""

    name: str
    end: End
    reason: str = ""

    @property
    def is_absent(self) -> bool:
        """Whether the object does not exist now."""
        return self.end in {End.DELETED, End.ABSENT}


def remove_configurations(connection: Connection, name: str) -> Sequence[Removed]:
    """Delete both configurations, if they belong to gpugate; an error for one does not affect the other."""
    return [_remove_configuration(connection, configuration) for configuration in both(name)]


def remove_keeper_objects(connection: Connection, names: Names) -> Sequence[Removed]:
    """Delete the certificate Secret and the Lease, which Helm does not delete because the keeper creates them."""
    namespace = f"namespaces/{names.namespace}"
    return [
        _remove_object(
            connection, f"/api/v1/{namespace}/secrets/{names.secret}", f"Secret {names.namespace}/{names.secret}"
        ),
        _remove_object(
            connection,
            f"/apis/coordination.k8s.io/v1/{namespace}/leases/{names.lease}",
            f"Lease {names.namespace}/{names.lease}",
        ),
    ]


def _remove_configuration(connection: Connection, configuration: Configuration) -> Removed:
    try:
        live = configuration.read(connection)
        if live is None:
            return Removed(str(configuration), End.ABSENT)
        if not is_ours(live):
            return Removed(str(configuration), End.FOREIGN)
        existed = configuration.delete(connection)
    except CallError as error:
        return Removed(str(configuration), End.FAILED, str(error))
    return Removed(str(configuration), End.DELETED if existed else End.ABSENT)


def _remove_object(connection: Connection, path: str, name: str) -> Removed:
    try:
        connection.delete(path)
    except ApiError as error:
        return Removed(name, End.ABSENT) if error.code == 404 else Removed(name, End.FAILED, str(error))
    except CallError as error:
        return Removed(name, End.FAILED, str(error))
    return Removed(name, End.DELETED)
