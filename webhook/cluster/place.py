"""Where the objects are that gpugate keeps or looks at by their name."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

MUTATING = "MutatingWebhookConfiguration"
VALIDATING = "ValidatingWebhookConfiguration"
_CONFIGURATIONS = {MUTATING: "mutatingwebhookconfigurations", VALIDATING: "validatingwebhookconfigurations"}


class Place(NamedTuple):
    """One object: the API and the resource under which it is served, its name, and its namespace if it has one."""

    api: str
    resource: str
    name: str
    namespace: str = ""

    @property
    def collection(self) -> str:
        """The path at which such objects are created and watched."""
        within = f"/namespaces/{quote(self.namespace, safe='')}" if self.namespace else ""
        return f"{self.api}{within}/{self.resource}"

    @property
    def path(self) -> str:
        """The path of the object itself."""
        return f"{self.collection}/{quote(self.name, safe='')}"

    def __str__(self) -> str:
        where = f" in namespace {self.namespace!r}" if self.namespace else ""
        return f"{self.resource} {self.name!r}{where}"


def secret(namespace: str, name: str) -> Place:
    """Return where a Secret is."""
    return Place("/api/v1", "secrets", name, namespace)


def lease(namespace: str, name: str) -> Place:
    """Return where a Lease is."""
    return Place("/apis/coordination.k8s.io/v1", "leases", name, namespace)


def namespace(name: str) -> Place:
    """Return where a Namespace is."""
    return Place("/api/v1", "namespaces", name)


def configurations(name: str) -> dict[str, Place]:
    """Return where both webhook configurations of a name are, by their kinds."""
    api = "/apis/admissionregistration.k8s.io/v1"
    return {kind: Place(api, resource, name) for kind, resource in _CONFIGURATIONS.items()}
