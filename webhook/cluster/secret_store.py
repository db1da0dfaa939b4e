"""Keeps one Secret by its name: a `certs.protocols.SecretStore`."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.certs.protocols import ChangedMeanwhile, ClusterFailure, StoredSecret
from gpugate.webhook.cluster import place
from gpugate.webhook.cluster.failures import failing_as_cluster, read_or_none

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.webhook.cluster.connection import Connection

# Of all values together: k8s.io/api core/v1 types.go MaxSecretSize, v0.36.
_LARGEST: Final = 1024 * 1024
_LABELS: Final = {"app.kubernetes.io/name": "gpugate", "app.kubernetes.io/managed-by": "gpugate"}


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str
    annotations: dict[str, str] | None = None


class _Secret(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, bytes] | None = None


class NamedSecret:
    """A Secret of a namespace; nothing of it is kept between two calls."""

    def __init__(self, connection: Connection, namespace: str, name: str) -> None:
        self.place = place.secret(namespace, name)
        self._connection = connection

    def read(self) -> StoredSecret | None:
        """Return it as the API server has it now, or None if there is none.

        Raises:
            ClusterFailure: it cannot be read.
        """
        with failing_as_cluster("get", self.place):
            answer = read_or_none(self._connection, self.place)
            return None if answer is None else _stored(answer)

    def create(self, data: Mapping[str, bytes]) -> StoredSecret:
        """Make it, with labels that say whose it is.

        Raises:
            ChangedMeanwhile: there is one.
            ClusterFailure: it cannot be written, or nobody knows whether it was.
        """
        made = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.place.name, "namespace": self.place.namespace, "labels": _LABELS},
            "type": "Opaque",
            "data": self._encoded(data),
        }
        with failing_as_cluster("create", self.place):
            return _stored(self._connection.create(self.place.collection, made))

    def replace(self, data: Mapping[str, bytes], version: str) -> StoredSecret:
        """Replace its content, if it still has the resource version it was read with; all else stays.

        Raises:
            ChangedMeanwhile: it has another, or is gone.
            ClusterFailure: it cannot be written, or nobody knows whether it was.
        """
        encoded = self._encoded(data)
        with failing_as_cluster("get", self.place):
            answer = read_or_none(self._connection, self.place)
            # Labels, annotations and owners are somebody else's, and a Secret is replaced as a whole.
            held = msgspec.json.decode(answer, type=dict[str, Any]) if answer is not None else None
        if held is None or held["metadata"]["resourceVersion"] != version:
            raise ChangedMeanwhile(f"{self.place} is gone, or was changed since it was read")
        with failing_as_cluster("update", self.place):
            return _stored(self._connection.replace(self.place.path, {**held, "data": encoded}))

    def _encoded(self, data: Mapping[str, bytes]) -> dict[str, str]:
        size = sum(map(len, data.values()))
        if size > _LARGEST:
            raise ClusterFailure(f"{self.place} would hold {size:,} bytes, and no Secret may hold over {_LARGEST:,}")
        return {key: base64.b64encode(value).decode("ascii") for key, value in data.items()}


def _stored(answer: bytes) -> StoredSecret:
    # msgspec reads bytes from base64.
    read = msgspec.json.decode(answer, type=_Secret)
    return StoredSecret(read.data or {}, read.metadata.resource_version, read.metadata.annotations or {})
