"""Read and write one Secret by its name: a `certs.protocols.SecretStore`."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.certs.protocols import ClusterFailure, ConflictError, StoredSecret
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.cluster import named_object
from gpugate.webhook.cluster.named_object import build_metadata, convert_call_errors, read_or_none

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.webhook.cluster.connection import Connection

# The limit for all values together: k8s.io/api core/v1 types.go MaxSecretSize, v0.36.
_MAX_SIZE: Final = 1024 * 1024


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _Secret(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, bytes] | None = None


_SECRETS: Final = msgspec.json.Decoder(_Secret)
_OBJECTS: Final = msgspec.json.Decoder(dict[str, Any])


class NamedSecret:
    """A Secret of a namespace; only its labels and annotations are kept between two calls."""

    def __init__(self, connection: Connection, namespace: str, name: str) -> None:
        self.location = named_object.secret(namespace, name)
        self._connection = connection
        self._metadata: dict[str, Any] | None = None

    def read(self) -> StoredSecret | None:
        """Read the Secret from the API server; None if it does not exist.

        Raises:
            ClusterFailure: it cannot be read.
        """
        with convert_call_errors("get", self.location):
            answer = read_or_none(self._connection, self.location)
            return None if answer is None else self._decode(answer)

    def create(self, data: Mapping[str, bytes]) -> StoredSecret:
        """Create the Secret with the labels and annotations that it had before, else with a label that names gpugate.

        Raises:
            ConflictError: it exists already.
            ClusterFailure: the write failed, or its result is unknown.
        """
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": build_metadata(self.location, self._metadata),
            "type": "Opaque",
            "data": self._encode(data),
        }
        with convert_call_errors("create", self.location):
            return self._decode(self._connection.create(self.location.collection, secret))

    def replace(self, data: Mapping[str, bytes], version: str) -> StoredSecret:
        """Replace the data of the Secret if `version` is still its resource version; everything else remains.

        Raises:
            ConflictError: it has a different resource version, or was deleted.
            ClusterFailure: the write failed, or its result is unknown.
        """
        encoded = self._encode(data)
        with convert_call_errors("get", self.location):
            answer = read_or_none(self._connection, self.location)
            # A Secret is replaced as a whole, and its labels, annotations and owners belong to other clients. Only its managed
            # fields can be so deep that `read_json` shortens them; the API server computes those of each write again.
            current = read_json(_OBJECTS.decode, answer) if answer is not None else None
        if current is None or current["metadata"]["resourceVersion"] != version:
            raise ConflictError(f"{self.location} was changed or deleted after it was read")
        with convert_call_errors("update", self.location):
            return self._decode(self._connection.replace(self.location.path, {**current, "data": encoded}))

    def _encode(self, data: Mapping[str, bytes]) -> dict[str, str]:
        size = sum(map(len, data.values()))
        if size > _MAX_SIZE:
            raise ClusterFailure(f"{self.location} would contain {size:,} bytes (maximum: {_MAX_SIZE:,})")
        return {key: base64.b64encode(value).decode("ascii") for key, value in data.items()}

    def _decode(self, answer: bytes) -> StoredSecret:
        # msgspec decodes fields of type bytes from base64.
        secret = read_json(_SECRETS.decode, answer)
        self._metadata = {"labels": secret.metadata.labels, "annotations": secret.metadata.annotations}
        return StoredSecret(secret.data or {}, secret.metadata.resource_version, secret.metadata.annotations or {})
