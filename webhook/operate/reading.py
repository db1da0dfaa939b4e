"""Read the objects of one installation from a cluster, without changes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from gpugate.webhook.cluster.errors import ApiError, CallError, UnreachableError
from gpugate.webhook.operate.installation import KINDS, Installation, Unread, public_parts

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Found, Names, Object, Several

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
    inside = f"namespaces/{names.namespace}"
    configurations = {
        kind: reader.one(f"{_ADMISSION}/{_PLURALS[kind]}/{names.configuration}", f"{kind} {names.configuration}", kind)
        for kind in KINDS
    }
    secret = reader.one(f"/api/v1/{inside}/secrets/{names.secret}", f"Secret {names.namespace}/{names.secret}")
    deployments = reader.several(f"/apis/apps/v1/{inside}/deployments", f"Deployments of {names.namespace}")
    return Installation(
        names=names,
        now=now,
        server=version,
        configurations=configurations,
        others=_others(reader, names.configuration),
        namespace=reader.one(f"/api/v1/{inside}", f"Namespace {names.namespace}"),
        secret=secret if secret is None or isinstance(secret, Unread) else public_parts(secret),
        service_account=reader.one(
            f"/api/v1/{inside}/serviceaccounts/{names.service_account}",
            f"ServiceAccount {names.namespace}/{names.service_account}",
        ),
        lease=reader.one(
            f"/apis/coordination.k8s.io/v1/{inside}/leases/{names.lease}", f"Lease {names.namespace}/{names.lease}"
        ),
        service=reader.one(f"/api/v1/{inside}/services/{names.service}", f"Service {names.namespace}/{names.service}"),
        endpoint_slices=reader.several(
            f"/apis/discovery.k8s.io/v1/{inside}/endpointslices",
            f"EndpointSlices of Service {names.namespace}/{names.service}",
            {"labelSelector": f"{SERVICE_NAME}={names.service}"},
        ),
        deployments=deployments,
        pods=reader.several(f"/api/v1/{inside}/pods", f"Pods of {names.namespace}"),
        config_maps=_mounted(reader, names.namespace, deployments),
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
            return str(orjson.loads(self._connection.read("/version", {})).get("gitVersion", ""))
        except (orjson.JSONDecodeError, AttributeError):
            raise UnreachableError(f"{self._connection.host} is not an API server: its version is invalid") from None

    def one(self, path: str, what: str, kind: str = "") -> Found:
        """Return an object; None if it does not exist."""
        try:
            found: dict[str, Any] = self._parsed(path, {})
        except ApiError as error:
            return None if error.code == 404 else Unread(what, unread_because(error))
        except CallError as error:
            return Unread(what, unread_because(error))
        return {**found, "kind": kind} if kind else found

    def several(self, path: str, what: str, parameters: Mapping[str, str] | None = None, kind: str = "") -> Several:
        """Return the objects at a path; empty if the resource is not served."""
        found: list[Object] = []
        query = {"limit": "500", **(parameters or {})}
        try:
            while True:
                page: dict[str, Any] = self._parsed(path, query)
                found += page.get("items") or ()
                token = (page.get("metadata") or {}).get("continue")
                if not token:
                    break
                query["continue"] = token
        except ApiError as error:
            return () if error.code == 404 else Unread(what, unread_because(error))
        except CallError as error:
            return Unread(what, unread_because(error))
        return [{**each, "kind": kind} for each in found] if kind else found

    def _parsed(self, path: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        try:
            value = orjson.loads(self._connection.read(path, parameters))
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise UnreachableError(f"{self._connection.host}{path} is not the response of an API server")
        return value


def _others(reader: Reader, name: str) -> Several:
    found: list[Object] = []
    for kind in KINDS:
        listed = reader.several(f"{_ADMISSION}/{_PLURALS[kind]}", f"other {kind}s", kind=kind)
        if isinstance(listed, Unread):
            return listed
        found += (each for each in listed if each["metadata"]["name"] != name)
    return found


def _mounted(reader: Reader, namespace: str, deployments: Several) -> Mapping[str, Mapping[str, str]]:
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
        name: reader.one(f"/api/v1/namespaces/{namespace}/configmaps/{name}", f"ConfigMap {namespace}/{name}")
        for name in sorted(names)
    }
    return {
        name: found.get("data") or {}
        for name, found in read.items()
        if found is not None and not isinstance(found, Unread)
    }


def unread_because(error: CallError) -> str:
    """Return why an object could not be read."""
    if isinstance(error, ApiError) and error.code in {401, 403}:
        return "these credentials may not read it"
    return str(error)
