"""The calls to a cluster that certificate renewal needs, as protocols; the Kubernetes client implements them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ClusterFailure(Exception):  # noqa: N818 -- a call failed, not gpugate
    """A call to the cluster failed; the text says why and what to check, without the content of an object."""


class ConflictError(ClusterFailure):
    """An object changed after it was read: another client wrote, created or deleted it."""


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A Secret as read from the API server.

    Attributes:
        data: key -> content, decoded.
        version: `metadata.resourceVersion`, opaque.
        annotations: `metadata.annotations`.
    """

    data: Mapping[str, bytes]
    version: str
    annotations: Mapping[str, str]

    def __repr__(self) -> str:
        return f"StoredSecret({sorted(self.data)}, version={self.version!r})"


class SecretStore(Protocol):
    """One Secret, identified by its name."""

    def read(self) -> StoredSecret | None:
        """Read the Secret from the API server; None if it does not exist.

        Raises:
            ClusterFailure: it cannot be read.
        """

    def create(self, data: Mapping[str, bytes]) -> StoredSecret:
        """Create the Secret.

        Raises:
            ConflictError: it exists already.
            ClusterFailure: the write failed, or its result is unknown.
        """

    def replace(self, data: Mapping[str, bytes], version: str) -> StoredSecret:
        """Replace the data of the Secret if `version` is still its resource version; annotations remain.

        Raises:
            ConflictError: it has a different resource version, or was deleted.
            ClusterFailure: the write failed, or its result is unknown.
        """


@dataclass(frozen=True, slots=True)
class LiveConfiguration:
    """A webhook configuration that exists.

    Attributes:
        kind: `MutatingWebhookConfiguration` or `ValidatingWebhookConfiguration`.
        bundles: the name of each webhook entry -> its `clientConfig.caBundle`, decoded; empty if it has none.
        version: `metadata.resourceVersion`, opaque.
    """

    kind: str
    bundles: Mapping[str, bytes]
    version: str


class Registration(Protocol):
    """The mutating and the validating webhook configuration of this webhook, identified by their name."""

    def read(self) -> Sequence[LiveConfiguration]:
        """Read the configurations that exist from the API server.

        Raises:
            ClusterFailure: they cannot be read.
        """

    def publish(self, configuration: LiveConfiguration, bundle: bytes) -> None:
        """Set the `caBundle` of every entry of a configuration and the owner of the configuration, nothing else.

        Raises:
            ConflictError: the configuration changed after it was read.
            ClusterFailure: the write failed, or its result is unknown.
        """


class Leadership(Protocol):
    """The election of the replica that may write."""

    @property
    def is_leader(self) -> bool:
        """Whether this replica may write now; read it again before each write."""
