"""Read the objects of one installation from a cluster, without changes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.cluster.errors import ApiError, CallError, UnreachableError
from gpugate.webhook.operate.installation import KINDS, Installation, Unread, public_parts

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Names, Object, OptionalObject, OptionalObjects

_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_PLURALS: Final = {kind: f"{kind.lower()}s" for kind in KINDS}
# The EndpointSlice controller sets this label on each slice of a Service (`k8s.io/api` discovery/v1
# well_known_labels.go, v0.36).
SERVICE_NAME: Final = "kubernetes.io/service-name"


def read_installation(connection: Connection, names: Names, now: dt.datetime) -> Installation:
    """Read all objects; an object that the credentials do not allow to read is `Unread`.

    Raises:
        UnreachableError: the API server does not answer.
        ApiError: the API server does not accept these credentials.
    """
    reader = Reader(connection)
    version = reader.version()
    namespace = f"namespaces/{names.namespace}"
    configurations = {
        kind: reader.read_object(
            f"{_ADMISSION}/{_PLURALS[kind]}/{names.configuration}", f"{kind} {names.configuration}", kind
        )
        for kind in KINDS
    }
    secret = reader.read_object(
        f"/api/v1/{namespace}/secrets/{names.secret}", f"Secret {names.namespace}/{names.secret}"
    )
    deployments = reader.read_objects(f"/apis/apps/v1/{namespace}/deployments", f"Deployments of {names.namespace}")
    return Installation(
        names=names,
        now=now,
        server=version,
        configurations=configurations,
        others=_read_others(reader, names.configuration),
        namespace=reader.read_object(f"/api/v1/{namespace}", f"Namespace {names.namespace}"),
        secret=secret if secret is None or isinstance(secret, Unread) else public_parts(secret),
        service_account=reader.read_object(
            f"/api/v1/{namespace}/serviceaccounts/{names.service_account}",
            f"ServiceAccount {names.namespace}/{names.service_account}",
        ),
        lease=reader.read_object(
            f"/apis/coordination.k8s.io/v1/{namespace}/leases/{names.lease}", f"Lease {names.namespace}/{names.lease}"
        ),
        service=reader.read_object(
            f"/api/v1/{namespace}/services/{names.service}", f"Service {names.namespace}/{names.service}"
        ),
        endpoint_slices=reader.read_objects(
            f"/apis/discovery.k8s.io/v1/{namespace}/endpointslices",
            f"EndpointSlices of Service {names.namespace}/{names.service}",
            {"labelSelector": f"{SERVICE_NAME}={names.service}"},
        ),
        deployments=deployments,
        pods=reader.read_objects(f"/api/v1/{namespace}/pods", f"Pods of {names.namespace}"),
        config_maps=_read_config_maps(reader, names.namespace, deployments),
    )


class Reader:
    """Reads objects; an object that the credentials do not allow to read is `Unread`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def version(self) -> str:
        """Return the version of the API server; the call also verifies that it answers.

        Raises:
            UnreachableError: the API server does not answer.
            ApiError: the API server does not accept these credentials.
        """
        try:
            return str(read_json(orjson.loads, self._connection.read("/version", {})).get("gitVersion", ""))
        except (orjson.JSONDecodeError, AttributeError):
            raise UnreachableError(f"{self._connection.host} is not an API server: its version is invalid") from None

    def read_object(self, path: str, subject: str, kind: str = "") -> OptionalObject:
        """Return an object; None if it does not exist."""
        try:
            value: dict[str, Any] = self._read(path, {})
        except ApiError as error:
            return None if error.code == 404 else Unread(subject, describe_unread(error))
        except CallError as error:
            return Unread(subject, describe_unread(error))
        return {**value, "kind": kind} if kind else value

    def read_objects(
        self, path: str, subject: str, parameters: Mapping[str, str] | None = None, kind: str = ""
    ) -> OptionalObjects:
        """Return the objects at a path; empty if the resource is not served."""
        objects: list[Object] = []
        query = {"limit": "500", **(parameters or {})}
        try:
            while True:
                page: dict[str, Any] = self._read(path, query)
                objects += page.get("items") or ()
                token = (page.get("metadata") or {}).get("continue")
                if not token:
                    break
                query["continue"] = token
        except ApiError as error:
            return () if error.code == 404 else Unread(subject, describe_unread(error))
        except CallError as error:
            return Unread(subject, describe_unread(error))
        return [{**item, "kind": kind} for item in objects] if kind else objects

    def _read(self, path: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        try:
            value = read_json(orjson.loads, self._connection.read(path, parameters))
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise UnreachableError(f"{self._connection.host}{path} is not the response of an API server")
        return value


def _read_others(reader: Reader, name: str) -> OptionalObjects:
    others: list[Object] = []
    for kind in KINDS:
        listed = reader.read_objects(f"{_ADMISSION}/{_PLURALS[kind]}", f"other {kind}s", kind=kind)
        if isinstance(listed, Unread):
            return listed
        others += (configuration for configuration in listed if configuration["metadata"]["name"] != name)
    return others


def _read_config_maps(reader: Reader, namespace: str, deployments: OptionalObjects) -> Mapping[str, Mapping[str, str]]:
    """Return the readable ConfigMaps that the Deployments mount; one of them contains the policy file."""
    if isinstance(deployments, Unread):
        return {}
    names = {
        volume["configMap"].get("name", "")
        for deployment in deployments
        for volume in deployment["spec"]["template"]["spec"].get("volumes") or ()
        if volume.get("configMap")
    }
    read = {
        name: reader.read_object(f"/api/v1/namespaces/{namespace}/configmaps/{name}", f"ConfigMap {namespace}/{name}")
        for name in sorted(names)
    }
    return {
        name: config_map.get("data") or {}
        for name, config_map in read.items()
        if config_map is not None and not isinstance(config_map, Unread)
    }


def describe_unread(error: CallError) -> str:
    """Return why an object could not be read."""
    if isinstance(error, ApiError) and error.code in {401, 403}:
        return "these credentials may not read it"
    return str(error)
