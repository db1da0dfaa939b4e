"""Read both webhook configurations, and write their `caBundle`: a `certs.protocols.Registration`.

The `caBundle` is written by a strategic merge patch, not by server-side apply, which would make gpugate an owner of the
webhook entries. Helm 4 also applies, and could then not remove an entry that a release no longer has: the rest of the
entry, a name and gpugate's `caBundle`, is invalid, and the whole upgrade fails (422 "sideEffects: Required value ...";
observed with kube-apiserver v1.36.3).

With a patch, gpugate owns only the field (`managedFields` operation `Update`), and the field is removed with its entry,
by apply (Helm 4) or by a merge (Helm 3). The bundle remains when an entry is applied again, or when its `service` is
replaced by a `url`. The patch contains the resource version: if an entry was removed since, the response is 409.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.certs.protocols import LiveConfiguration
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.cluster import named_object
from gpugate.webhook.cluster.errors import ApiError
from gpugate.webhook.cluster.named_object import convert_call_errors, read_or_none

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.cluster.named_object import ObjectLocation

_MANAGER: Final = "gpugate-certificates"


class _ClientConfig(msgspec.Struct, rename={"ca_bundle": "caBundle"}):
    ca_bundle: bytes = b""


class _Webhook(msgspec.Struct, rename="camel"):
    name: str
    client_config: _ClientConfig


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Configuration(msgspec.Struct):
    metadata: _Metadata
    webhooks: list[_Webhook] | None = None


class _Identity(msgspec.Struct):
    uid: str


class _Namespace(msgspec.Struct):
    metadata: _Identity


_CONFIGURATIONS: Final = msgspec.json.Decoder(_Configuration)
_NAMESPACES: Final = msgspec.json.Decoder(_Namespace)
_OBJECTS: Final = msgspec.json.Decoder(dict[str, Any])


class LiveRegistration:
    """Both webhook configurations of a name, owned by a Namespace so that they are deleted with it."""

    def __init__(self, connection: Connection, name: str, namespace: str) -> None:
        self.locations = named_object.configurations(name)
        self._namespace = named_object.namespace(namespace)
        self._connection = connection
        self._owner: dict[str, object] | None = None

    def read(self) -> Sequence[LiveConfiguration]:
        """Read the configurations that exist from the API server.

        Raises:
            ClusterFailure: they cannot be read.
        """
        configurations = []
        for kind, location in self.locations.items():
            with convert_call_errors("get", location):
                answer = read_or_none(self._connection, location)
                if answer is not None:
                    configurations.append(_convert(kind, read_json(_CONFIGURATIONS.decode, answer)))
        return configurations

    def read_objects(self) -> list[dict[str, Any]]:
        """Read the configurations that exist from the API server, as complete objects.

        Raises:
            ClusterFailure: they cannot be read.
        """
        objects = []
        for location in self.locations.values():
            with convert_call_errors("get", location):
                answer = read_or_none(self._connection, location)
                if answer is not None:
                    objects.append(read_json(_OBJECTS.decode, answer))
        return objects

    def publish(self, configuration: LiveConfiguration, bundle: bytes) -> None:
        """Set the `caBundle` of every entry of a configuration and the owner of the configuration, nothing else.

        Raises:
            ConflictError: the configuration changed after it was read.
            ClusterFailure: the write failed, or its result is unknown.
        """
        if not configuration.bundles:
            return
        client_config = {"caBundle": base64.b64encode(bundle).decode("ascii")}
        webhooks = [{"name": name, "clientConfig": client_config} for name in configuration.bundles]
        version = {"resourceVersion": configuration.version}
        location = self.locations[configuration.kind]
        owner = self._owner_reference()
        with convert_call_errors("patch", location):
            try:
                # Owners are merged by uid, so owners that other clients set remain.
                self._patch(location, {**version, "ownerReferences": [owner] if owner else []}, webhooks)
            except ApiError as error:
                if not _is_owner_rejected(error):
                    raise
                self._patch(location, version, webhooks)

    def _patch(self, location: ObjectLocation, metadata: object, webhooks: object) -> None:
        self._connection.merge_by_key(location.path, {"metadata": metadata, "webhooks": webhooks}, _MANAGER)

    def _owner_reference(self) -> dict[str, object] | None:
        """Return the owner reference to the Namespace, read once; None if it is unreadable, because it is optional."""
        if self._owner is None:
            with convert_call_errors("get", self._namespace):
                try:
                    answer = self._connection.read(self._namespace.path, {})
                except ApiError:
                    return None
                uid = read_json(_NAMESPACES.decode, answer).metadata.uid
            self._owner = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "name": self._namespace.name,
                "uid": uid,
                "blockOwnerDeletion": False,
            }
        return self._owner


def _is_owner_rejected(error: ApiError) -> bool:
    """Whether the admission plugin OwnerReferencesPermissionEnforcement rejected the owner.

    It requires the right to delete an object to set its owner (k8s.io/kubernetes plugin/pkg/admission/gc, v1.36). It is
    off by default.
    """
    return error.code == 403 and "ownerRef" in error.message


def _convert(kind: str, configuration: _Configuration) -> LiveConfiguration:
    bundles = {webhook.name: webhook.client_config.ca_bundle for webhook in configuration.webhooks or ()}
    return LiveConfiguration(kind, bundles, configuration.metadata.resource_version)
