"""How it stands with the facts about one kind, for metrics, logs and readiness."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from gpugate.webhook.cluster.discovery import resource_name

if TYPE_CHECKING:
    from gpugate.policies.sdk.kinds import Kind


class Standing(Enum):
    """What is known about a kind; a closed set, so it may label a metric.

    UNREAD: not read yet, and policies that need it skip. SYNCED: read, and watched. STALE: read, but the API server
    does not answer now; what was read serves on. NOT_SERVED and FORBIDDEN: the cluster does not have the kind, or does
    not let us read it; policies that need it skip.
    """

    UNREAD = "unread"
    SYNCED = "synced"
    STALE = "stale"
    NOT_SERVED = "not_served"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True)
class KindState:
    """How it stands with one kind: the number of objects held, None where none are; `reason` says what is wrong."""

    kind: Kind
    standing: Standing
    objects: int | None = None
    reason: str = ""

    @property
    def served(self) -> bool:
        """Whether the cluster has the kind, as far as is known."""
        return self.standing is not Standing.NOT_SERVED

    @property
    def resource(self) -> str:
        """The kind as RBAC names it, such as `nodepools.karpenter.sh`."""
        return resource_name(self.kind)
