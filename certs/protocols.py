"""What keeping certificates needs of a cluster; implemented where the Kubernetes client is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ClusterFailure(Exception):  # noqa: N818 -- what failed is a call, not gpugate
    """A call to the cluster failed; the text says why and what to look at, without any content."""


class ChangedMeanwhile(ClusterFailure):
    """An object is not as it was read: somebody else wrote, created or deleted it since."""


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A Secret as it was read.

    Attributes:
        data: key -> content, decoded.
        version: its `metadata.resourceVersion`, an opaque text.
        annotations: those of its metadata.
    """

    data: Mapping[str, bytes]
    version: str
    annotations: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"StoredSecret({sorted(self.data)}, version={self.version!r})"


class SecretStore(Protocol):
    """One Secret, by its name."""

    def read(self) -> StoredSecret | None:
        """Return it as the API server has it now, or None if there is none.

        Raises:
            ClusterFailure: it cannot be read.
        """

    def create(self, data: Mapping[str, bytes]) -> StoredSecret:
        """Make it.

        Raises:
            ChangedMeanwhile: there is one.
            ClusterFailure: it cannot be written, or nobody knows whether it was.
        """

    def replace(self, data: Mapping[str, bytes], version: str) -> StoredSecret:
        """Replace its content, if it still has the resource version it was read with; annotations stay.

        Raises:
            ChangedMeanwhile: it has another, or is gone.
            ClusterFailure: it cannot be written, or nobody knows whether it was.
        """


@dataclass(frozen=True, slots=True)
class Registered:
    """A webhook configuration that exists.

    Attributes:
        kind: `MutatingWebhookConfiguration` or `ValidatingWebhookConfiguration`.
        bundles: the name of each webhook entry -> its `clientConfig.caBundle`, decoded; empty where there is none.
        version: its `metadata.resourceVersion`, an opaque text.
    """

    kind: str
    bundles: Mapping[str, bytes]
    version: str = ""


class Registration(Protocol):
    """Both webhook configurations of this webhook, by their name."""

    def read(self) -> Sequence[Registered]:
        """Return those that exist, as the API server has them now.

        Raises:
            ClusterFailure: they cannot be read.
        """

    def publish(self, configuration: Registered, bundle: bytes) -> None:
        """Set the `caBundle` of every entry of a configuration, and nothing else but who owns the configuration.

        Raises:
            ChangedMeanwhile: the configuration is not as it was read.
            ClusterFailure: it cannot be written, or nobody knows whether it was.
        """


class Leadership(Protocol):
    """Which of several replicas may write."""

    @property
    def held(self) -> bool:
        """Whether this one may write now; ask again before each write."""
