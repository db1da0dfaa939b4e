"""The options with which webhook configurations were generated, so that they do not count as drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from gpugate.webhook.registration.objects import KARPENTER_USERS, NAMESPACE_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gpugate.webhook.registration.entries import RiskGroup

_Object: TypeAlias = "Mapping[str, Any]"  # Any: the JSON edge


@dataclass(frozen=True, slots=True)
class Meant:
    """The options; None means unknown.

    Attributes:
        fail: the groups with `failurePolicy: Fail` for requests that can be denied. If unknown, both failure policies are
            accepted for these entries.
        fail_mutating: the same for requests that can be mutated.
        karpenter_users: the users whose changes of NodePools are not sent; Karpenter's default users if unknown.
        without: the disabled groups.
        only_namespaces: the only namespaces whose objects are sent; empty for all.
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
        """Return a generated configuration without disabled groups and other namespaces."""
        silent = {group.value for group in self.without or ()}
        entries = [entry for entry in configuration["webhooks"] if not silent & set(entry["name"].split("."))]
        if self.only_namespaces:
            entries = [self._fenced(entry) for entry in entries]
        return {**configuration, "webhooks": entries}

    def _fenced(self, entry: _Object) -> _Object:
        others = entry["namespaceSelector"].get("matchExpressions")
        if others is None:
            # Probes are sent only from one namespace.
            return entry
        only = {"key": NAMESPACE_NAME, "operator": "In", "values": list(self.only_namespaces or ())}
        return {**entry, "namespaceSelector": {"matchExpressions": [*others, only]}}
