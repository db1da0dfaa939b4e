"""What is asked about together: the kinds for which somebody decides at once whether requests wait for the webhook."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpugate.webhook.generate.judged_resources import Judged


class RiskGroup(Enum):
    """Kinds whose requests wait, or do not, for the same reasons; each has an entry of its own in a configuration."""

    POOLS = "pools"
    NODECLAIMS = "nodeclaims"
    PODS = "pods"
    WORKLOADS = "workloads"
    SCALING = "scaling"
    CLAIMS = "claims"
    DISRUPTION = "disruption"
    NAMESPACES = "namespaces"

    @property
    def may_wait(self) -> bool:
        """Whether its requests may wait: nodes come with NodeClaims, and workloads get no more than warnings."""
        return self not in {RiskGroup.NODECLAIMS, RiskGroup.WORKLOADS}

    @property
    def written_by_karpenter(self) -> bool:
        """Whether Karpenter writes such objects, which it must be able to do whoever else is down.

        It notes a hash on every NodePool and EC2NodeClass (`sigs.k8s.io/karpenter` v1.14 pkg/controllers/nodepool/hash).
        """
        return self in {RiskGroup.POOLS, RiskGroup.NODECLAIMS}


_OF_RESOURCE: Final = {
    ("", "pods"): RiskGroup.PODS,
    ("", "namespaces"): RiskGroup.NAMESPACES,
    ("karpenter.sh", "nodeclaims"): RiskGroup.NODECLAIMS,
    ("karpenter.sh", "machines"): RiskGroup.NODECLAIMS,
}
_OF_GROUP: Final = {
    "karpenter.sh": RiskGroup.POOLS,
    "karpenter.k8s.aws": RiskGroup.POOLS,
    "provisioning.karpenter.sh": RiskGroup.POOLS,
    "eks.amazonaws.com": RiskGroup.POOLS,
    "keda.sh": RiskGroup.SCALING,
    "autoscaling": RiskGroup.SCALING,
    "resource.k8s.io": RiskGroup.CLAIMS,
    "policy": RiskGroup.DISRUPTION,
}


def risk_group(judged: Judged) -> RiskGroup:
    """Return the group of a resource; one that nobody has thought of never waits."""
    known = _OF_RESOURCE.get((judged.group, judged.plural)) or _OF_GROUP.get(judged.group)
    return known or RiskGroup.WORKLOADS
