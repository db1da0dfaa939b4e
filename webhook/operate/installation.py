"""What a cluster holds of one installation of the webhook, as it was at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from gpugate.webhook.operate.certificate_secret import CertificateSecret

Object: TypeAlias = Mapping[str, Any]  # Any: the JSON edge

MUTATING: Final = "MutatingWebhookConfiguration"
VALIDATING: Final = "ValidatingWebhookConfiguration"
KINDS: Final = (MUTATING, VALIDATING)


@dataclass(frozen=True, slots=True)
class Names:
    """What the parts of an installation are called; all but the configurations are in `namespace`."""

    namespace: str = "gpugate"
    service: str = "gpugate"
    configuration: str = "gpugate"
    secret: str = "gpugate-certificates"  # noqa: S105 -- the name of an object
    lease: str = "gpugate"
    service_account: str = "gpugate"


@dataclass(frozen=True, slots=True)
class Unread:
    """What could not be looked at, which says nothing about whether it is there; `reason` is for people."""

    what: str
    reason: str


# One object: as it is stored, None where there is none, or not looked at.
Found: TypeAlias = "Object | Unread | None"
# Several objects: those that there are, or not looked at.
Several: TypeAlias = "Sequence[Object] | Unread"


@dataclass(frozen=True, slots=True)
class Installation:
    """What was read, and when.

    Attributes:
        names: what was looked for.
        now: when it was read, by the clock of this machine.
        server: the version of the API server, such as `v1.36.3`.
        configurations: `MutatingWebhookConfiguration` and `ValidatingWebhookConfiguration` -> the one of this name.
        others: every other webhook configuration of the cluster, each with its `kind`.
        namespace: the Namespace.
        secret: the certificate Secret, without what is private in it.
        service_account: the ServiceAccount.
        lease: which replica writes.
        service: the Service.
        endpoint_slices: those of the Service.
        deployments: every Deployment of the namespace.
        pods: every Pod of the namespace.
        config_maps: the name of a ConfigMap that a Deployment mounts -> its data.
    """

    names: Names
    now: dt.datetime
    server: str
    configurations: Mapping[str, Found]
    others: Several
    namespace: Found
    secret: CertificateSecret | Unread | None
    service_account: Found
    lease: Found
    service: Found
    endpoint_slices: Several
    deployments: Several
    pods: Several
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def unread(self) -> Sequence[Unread]:
        """What could not be looked at."""
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
        """Every webhook entry of both configurations, with the kind of the configuration that it is in."""
        return [
            (kind, entry)
            for kind, found in self.configurations.items()
            if found is not None and not isinstance(found, Unread)
            for entry in found.get("webhooks") or ()
        ]

    @property
    def by_url(self) -> bool:
        """Whether the API server reaches the webhook by a URL, never through the Service."""
        reached = [entry.get("clientConfig") or {} for _, entry in self.entries]
        return bool(reached) and all(each.get("url") for each in reached)
