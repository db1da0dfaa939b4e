"""A snapshot of one installation of the webhook in a cluster."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from gpugate.certs import authorities
from gpugate.certs.authorities import CorruptSecretError
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.cluster.errors import ApiError, CallError, UnreachableError
from gpugate.webhook.registration.probe import entry_name

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.certs.authorities import Authorities
    from gpugate.webhook.cluster.connection import Connection


@dataclass(frozen=True, slots=True)
class CertificateSecret:
    """The public content of the certificate Secret.

    Attributes:
        public: key -> content, without private keys: `active.crt`, `previous.crt`, `state.json` ...
        corrupt: why the content is invalid; empty if it is valid.
        active: the authority that signs, PEM.
        next: the authority that will sign next, PEM; empty if there is none.
        bundle: every authority that clients must trust, PEM.
        answered: the annotations that request an operation -> the last value that the keeper has processed.
        annotations: the annotations of the Secret.
    """

    public: Mapping[str, bytes]
    corrupt: str = ""
    active: bytes = b""
    next: bytes = b""
    bundle: bytes = b""
    answered: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def public_parts(secret: Mapping[str, Any]) -> CertificateSecret:
    """Return the public content of a Secret from the API server; private keys are checked and dropped."""
    annotations = (secret.get("metadata") or {}).get("annotations") or {}
    data = {name: _decode(content) for name, content in (secret.get("data") or {}).items()}
    public = {name: content for name, content in data.items() if not _is_private(name, content)}
    try:
        return _valid_content(authorities.decode(data), public, annotations)
    except CorruptSecretError as error:
        return CertificateSecret(public, str(error), annotations=annotations)


def _valid_content(
    content: Authorities, public: Mapping[str, bytes], annotations: Mapping[str, str]
) -> CertificateSecret:
    return CertificateSecret(
        public,
        active=content.active.certificate,
        next=content.next.certificate if content.next else b"",
        bundle=content.bundle,
        answered=content.answered,
        annotations=annotations,
    )


def _is_private(name: str, content: bytes) -> bool:
    return name.endswith(".key") or b"PRIVATE KEY" in content


def _decode(content: object) -> bytes:
    try:
        return base64.b64decode(str(content), validate=True)
    except binascii.Error:
        return b""


Object: TypeAlias = Mapping[str, Any]  # Any: the JSON edge

MUTATING: Final = "MutatingWebhookConfiguration"
VALIDATING: Final = "ValidatingWebhookConfiguration"
KINDS: Final = (MUTATING, VALIDATING)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of an installation's objects; all except the configurations are in `namespace`."""

    namespace: str = "gpugate"
    service: str = "gpugate"
    configuration: str = "gpugate"
    secret: str = "gpugate-certificates"  # noqa: S105 -- the name of an object
    lease: str = "gpugate"
    service_account: str = "gpugate"


@dataclass(frozen=True, slots=True)
class Unread:
    """An object that could not be read, so it is unknown whether it exists; `reason` is shown to the user."""

    subject: str
    reason: str


# One object: None if it does not exist, `Unread` if it could not be read.
OptionalObject: TypeAlias = "Object | Unread | None"
# Several objects, or `Unread` if they could not be read.
OptionalObjects: TypeAlias = "Sequence[Object] | Unread"


@dataclass(frozen=True, slots=True)
class Installation:
    """The objects of an installation, and when they were read.

    Attributes:
        names: the names of the objects.
        now: the time of the snapshot, from the local clock.
        server: the version of the API server, such as `v1.36.3`.
        configurations: `MutatingWebhookConfiguration` and `ValidatingWebhookConfiguration` -> the object of each kind.
        others: all other webhook configurations of the cluster, each with its `kind`.
        namespace: the Namespace.
        secret: the certificate Secret, without private keys.
        service_account: the ServiceAccount.
        lease: the Lease of the leader.
        service: the Service.
        endpoint_slices: the EndpointSlices of the Service.
        deployments: all Deployments of the namespace.
        pods: all Pods of the namespace.
        config_maps: the name of each ConfigMap that a Deployment mounts -> its data.
    """

    names: Names
    now: dt.datetime
    server: str
    configurations: Mapping[str, OptionalObject]
    others: OptionalObjects
    namespace: OptionalObject
    secret: CertificateSecret | Unread | None
    service_account: OptionalObject
    lease: OptionalObject
    service: OptionalObject
    endpoint_slices: OptionalObjects
    deployments: OptionalObjects
    pods: OptionalObjects
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def unread(self) -> Sequence[Unread]:
        """The objects that could not be read."""
        parts = (
            *self.configurations.values(),
            self.others,
            self.namespace,
            self.secret,
            self.service_account,
            self.lease,
            self.service,
            self.endpoint_slices,
            self.deployments,
            self.pods,
        )
        return [part for part in parts if isinstance(part, Unread)]

    @property
    def entries(self) -> Sequence[tuple[str, Object]]:
        """The webhook entries of both configurations, each with the kind of its configuration."""
        return [
            (kind, entry)
            for kind, configuration in self.configurations.items()
            if configuration is not None and not isinstance(configuration, Unread)
            for entry in configuration.get("webhooks") or ()
        ]

    @property
    def by_url(self) -> bool:
        """Whether all entries use a URL instead of the Service."""
        clients = [entry.get("clientConfig") or {} for _, entry in self.entries]
        return bool(clients) and all(client.get("url") for client in clients)


_Object: TypeAlias = dict[str, Any]  # Any: the JSON edge

_API: Final = "/apis/admissionregistration.k8s.io/v1"
_OURS: Final = ("app.kubernetes.io/name", "gpugate")
# The keeper may write a `caBundle` between a read and a write. More conflicts in a row mean a competing writer.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Configuration:
    """One of both webhook configurations, which may not exist."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def read(self, connection: Connection) -> _Object | None:
        """Read the configuration; return None if it does not exist.

        Raises:
            CallError: the configuration cannot be read.
        """
        try:
            configuration = read_json(orjson.loads, connection.read(self._path, {}))
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        except orjson.JSONDecodeError:
            configuration = None
        if not isinstance(configuration, dict):
            raise UnreachableError(f"{connection.host} is not an API server: the response for {self} is invalid JSON")
        return configuration

    def change(self, connection: Connection, edit: Callable[[_Object], _Object]) -> bool:
        """Write the result of `how` for the current object; return whether that changed it.

        Raises:
            CallError: the configuration cannot be read or written.
        """
        for attempt in range(_TRIES):
            current = self.read(connection)
            changed = current and edit(current)
            if not changed or changed == current:
                return False
            try:
                connection.replace(self._path, changed)
            except ApiError as error:
                # Another client has deleted or changed the object since it was read.
                if error.code not in {404, 409} or attempt == _TRIES - 1:
                    raise
            else:
                return True
        return False

    def delete(self, connection: Connection) -> bool:
        """Delete the configuration; return whether it existed.

        Raises:
            CallError: the configuration cannot be deleted.
        """
        try:
            connection.delete(self._path)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    @property
    def _path(self) -> str:
        return f"{_API}/{self.kind.lower()}s/{self.name}"


def both(name: str) -> tuple[Configuration, Configuration]:
    """Return the mutating and the validating configuration of a name."""
    mutating, validating = KINDS
    return Configuration(mutating, name), Configuration(validating, name)


def is_ours(configuration: _Object) -> bool:
    """Return whether a configuration has gpugate's label, which gpugate and its chart always set."""
    key, value = _OURS
    return bool((configuration["metadata"].get("labels") or {}).get(key) == value)


_NAMESPACE: Final = "kubernetes.io/metadata.name"


def find_names(connection: Connection, configuration: str, namespace: str | None) -> Names:
    """Return the names of the installation with configurations of the name `configuration`.

    The probe entry contains the namespace and the Service. The other names derive from the name of the configurations,
    as in the chart. `namespace` overrides the namespace of the entry.
    """
    names = Names(
        configuration=configuration,
        service=configuration,
        lease=configuration,
        secret=f"{configuration}-certificates",
        service_account=configuration,
    )
    for entry in _probes(connection, configuration):
        service = entry["clientConfig"].get("service") or {}
        selected = (entry.get("namespaceSelector") or {}).get("matchLabels") or {}
        names = replace(
            names,
            namespace=selected.get(_NAMESPACE) or service.get("namespace") or names.namespace,
            service=service.get("name") or names.service,
        )
        break
    return replace(names, namespace=namespace) if namespace else names


def _probes(connection: Connection, configuration: str) -> Iterator[dict[str, Any]]:
    for phase, object_ in zip(("mutate", "validate"), both(configuration), strict=True):
        try:
            live = object_.read(connection)
        except CallError:
            continue
        yield from (e for e in (live or {}).get("webhooks") or () if e["name"] == entry_name(phase))
