"""What was chosen where webhook configurations were generated, so that nobody takes it for a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from gpugate.webhook.generate.registration import KARPENTER_USERS, NAMESPACE_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gpugate.webhook.generate.entries import RiskGroup

_Object: TypeAlias = "Mapping[str, Any]"  # Any: the JSON edge


@dataclass(frozen=True, slots=True)
class Meant:
    """Choices; None where nobody says what was chosen.

    Attributes:
        fail: the groups of which a request that could be refused waits for an answer. Where nobody says, an entry by which
            something can be refused may have either failure policy.
        fail_mutating: the same for a request that could be changed.
        karpenter_users: who writes node pools without being asked about it; Karpenter's usual users where nobody says.
        without: the groups of which nothing is sent.
        only_namespaces: the only namespaces that objects are sent from; all where there are none.
    """

    fail: Collection[RiskGroup] | None = None
    fail_mutating: Collection[RiskGroup] | None = None
    karpenter_users: Sequence[str] | None = None
    without: Collection[RiskGroup] | None = None
    only_namespaces: Sequence[str] | None = None

    @property
    def of_karpenter(self) -> Sequence[str]:
        """The users of Karpenter."""
        return KARPENTER_USERS if self.karpenter_users is None else self.karpenter_users

    def narrowed(self, configuration: _Object) -> dict[str, Any]:
        """Return a generated configuration without what is not sent."""
        silent = {group.value for group in self.without or ()}
        entries = [each for each in configuration["webhooks"] if not silent & set(each["name"].split("."))]
        if self.only_namespaces:
            entries = [self._fenced(each) for each in entries]
        return {**configuration, "webhooks": entries}

    def _fenced(self, entry: _Object) -> _Object:
        others = entry["namespaceSelector"].get("matchExpressions")
        if others is None:
            # Probes are sent from one namespace anyway.
            return entry
        only = {"key": NAMESPACE_NAME, "operator": "In", "values": list(self.only_namespaces or ())}
        return {**entry, "namespaceSelector": {"matchExpressions": [*others, only]}}
