"""Karpenter's removed APIs: the successors of kinds and of their fields.

Sources: Karpenter's "v1beta1 migration" and "v1 migration" guides (`website/content/en/docs/upgrading/` in
aws/karpenter-provider-aws at v0.32 and v1.1), `pkg/apis/v1alpha5` and `pkg/apis/v1beta1` at v0.31 and v1.0, `pkg/apis/v1`
at v1.14.1. As of 2026-11-21.
"""

from __future__ import annotations

from typing import Final

import msgspec


class LegacyApi(msgspec.Struct, frozen=True):
    """A kind that Karpenter no longer serves.

    `removed` is the release that removed it, `successor` the type to write instead; empty if there is none.
    """

    group: str
    version: str
    kind: str
    removed: str
    successor: str = ""


class Move(msgspec.Struct, frozen=True):
    """A renamed field with unchanged content; both paths are keys, such as `spec.limits.resources`."""

    old: str
    new: str


_NODE_POOL = "karpenter.sh/v1 NodePool"
_NODE_CLAIM = "karpenter.sh/v1 NodeClaim"
_NODE_CLASS = "karpenter.k8s.aws/v1 EC2NodeClass"

# `karpenter.sh/v1alpha1` is the version of NodeOverlay today (since v1.7), so the kind tells, not the version alone.
LEGACY_APIS: Final = (
    LegacyApi("karpenter.sh", "v1alpha1", "ScalableNodeGroup", "v0.2"),
    LegacyApi("karpenter.sh", "v1alpha1", "HorizontalAutoscaler", "v0.2"),
    LegacyApi("karpenter.sh", "v1alpha1", "MetricsProducer", "v0.2"),
    LegacyApi("provisioning.karpenter.sh", "v1alpha1", "Provisioner", "v0.3", _NODE_POOL),
    LegacyApi("karpenter.sh", "v1alpha3", "Provisioner", "v0.4.0", _NODE_POOL),
    LegacyApi("karpenter.sh", "v1alpha4", "Provisioner", "v0.4.3", _NODE_POOL),
    LegacyApi("karpenter.sh", "v1alpha5", "Provisioner", "v0.33", _NODE_POOL),
    LegacyApi("karpenter.sh", "v1alpha5", "Machine", "v0.33", _NODE_CLAIM),
    LegacyApi("karpenter.k8s.aws", "v1alpha1", "AWSNodeTemplate", "v0.33", _NODE_CLASS),
    LegacyApi("karpenter.sh", "v1beta1", "NodePool", "v1.1.0", _NODE_POOL),
    LegacyApi("karpenter.sh", "v1beta1", "NodeClaim", "v1.1.0", _NODE_CLAIM),
    LegacyApi("karpenter.k8s.aws", "v1beta1", "EC2NodeClass", "v1.1.0", _NODE_CLASS),
)

PROVISIONER_MOVES: Final = (
    Move("spec.labels", "spec.template.metadata.labels"),
    Move("spec.annotations", "spec.template.metadata.annotations"),
    Move("spec.requirements", "spec.template.spec.requirements"),
    Move("spec.taints", "spec.template.spec.taints"),
    Move("spec.startupTaints", "spec.template.spec.startupTaints"),
    Move("spec.limits.resources", "spec.limits"),
    Move("spec.weight", "spec.weight"),
)
NODE_POOL_MOVES: Final = (
    Move("spec.template.metadata.labels", "spec.template.metadata.labels"),
    Move("spec.template.metadata.annotations", "spec.template.metadata.annotations"),
    Move("spec.template.spec.requirements", "spec.template.spec.requirements"),
    Move("spec.template.spec.taints", "spec.template.spec.taints"),
    Move("spec.template.spec.startupTaints", "spec.template.spec.startupTaints"),
    Move("spec.template.spec.terminationGracePeriod", "spec.template.spec.terminationGracePeriod"),
    Move("spec.disruption.expireAfter", "spec.template.spec.expireAfter"),
    Move("spec.disruption.budgets", "spec.disruption.budgets"),
    Move("spec.limits", "spec.limits"),
    Move("spec.weight", "spec.weight"),
)
NODE_CLAIM_MOVES: Final = (
    Move("spec.requirements", "spec.requirements"),
    Move("spec.taints", "spec.taints"),
    Move("spec.startupTaints", "spec.startupTaints"),
    Move("spec.resources", "spec.resources"),
    Move("spec.terminationGracePeriod", "spec.terminationGracePeriod"),
)
# The fields of AWSNodeTemplate and of EC2NodeClass v1beta1 that kept their name and shape.
NODE_CLASS_MOVES: Final = tuple(
    Move(f"spec.{field}", f"spec.{field}")
    for field in (
        "associatePublicIPAddress",
        "instanceProfile",
        "role",
        "subnetSelectorTerms",
        "securityGroupSelectorTerms",
        "amiSelectorTerms",
        "blockDeviceMappings",
        "instanceStorePolicy",
        "metadataOptions",
        "detailedMonitoring",
        "userData",
        "tags",
        "context",
    )
)

# Keys of labels, annotations and taints that Karpenter removed in v1.0, and their successors (`designs/v1-api.md` and
# `designs/v1-roadmap.md` in kubernetes-sigs/karpenter v1.14.1).
LEGACY_KEYS: Final = {
    "karpenter.sh/do-not-consolidate": "karpenter.sh/do-not-disrupt",
    "karpenter.sh/do-not-evict": "karpenter.sh/do-not-disrupt",
    "karpenter.sh/disruption": "karpenter.sh/disrupted",
    "karpenter.sh/provisioner-name": "karpenter.sh/nodepool",
}
