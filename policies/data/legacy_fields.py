"""Fields of older Karpenter APIs that are still written into v1 objects.

Sources: Karpenter's "v1beta1 migration" and "v1 migration" guides (`website/content/en/docs/upgrading/` in
aws/karpenter-provider-aws at v0.32 and v1.1); v1.14.1 `pkg/apis/crds/karpenter.sh_nodepools.yaml` and
`karpenter.k8s.aws_ec2nodeclasses.yaml`, which have none of these.
"""

from __future__ import annotations

from typing import Final

import msgspec


class LegacyField(msgspec.Struct, frozen=True):
    """A field that v1 does not have; paths are of keys, such as `spec.limits.resources`.

    Attributes:
        path: its path in the object.
        successor: the path in v1, or what to write instead; empty if there is no replacement.
        moved: whether the successor has the same content.
        refused: whether the API server rejects it because of its type; it drops other fields.
        instead: the effect of dropping it; empty if the object works without it.
    """

    path: str
    successor: str = ""
    moved: bool = False
    refused: bool = False
    instead: str = ""


_CLASS_KUBELET: Final = "spec.kubelet of the EC2NodeClass"
_NO_EXPIRY: Final = "nodes expire after 720h"
_NO_TAINT: Final = "nodes get no taint"

NODE_POOL_FIELDS: Final = (
    LegacyField("spec.annotations", "spec.template.metadata.annotations", moved=True),
    LegacyField("spec.labels", "spec.template.metadata.labels", moved=True, instead="nodes get no labels"),
    LegacyField("spec.requirements", "spec.template.spec.requirements", moved=True, instead="nothing is required"),
    LegacyField("spec.taints", "spec.template.spec.taints", moved=True, instead=_NO_TAINT),
    LegacyField("spec.startupTaints", "spec.template.spec.startupTaints", moved=True, instead=_NO_TAINT),
    LegacyField("spec.consolidation", "spec.disruption.consolidationPolicy", instead="nodes are consolidated"),
    LegacyField("spec.ttlSecondsAfterEmpty", "spec.disruption.consolidateAfter"),
    LegacyField("spec.ttlSecondsUntilExpired", "spec.template.spec.expireAfter", instead=_NO_EXPIRY),
    LegacyField("spec.provider", "an EC2NodeClass"),
    LegacyField("spec.providerRef", "spec.template.spec.nodeClassRef"),
    LegacyField("spec.kubeletConfiguration", _CLASS_KUBELET, instead="the kubelet's defaults apply"),
    LegacyField("spec.limits.resources", "spec.limits", moved=True, refused=True),
    LegacyField("spec.disruption.expireAfter", "spec.template.spec.expireAfter", moved=True, instead=_NO_EXPIRY),
    LegacyField("spec.template.spec.kubelet", _CLASS_KUBELET, instead="the kubelet's defaults apply"),
    LegacyField("spec.template.spec.resources"),
    LegacyField("spec.template.spec.nodeClassRef.apiVersion", "spec.template.spec.nodeClassRef.group"),
)

NODE_CLASS_FIELDS: Final = (
    LegacyField("spec.subnetSelector", "spec.subnetSelectorTerms"),
    LegacyField("spec.securityGroupSelector", "spec.securityGroupSelectorTerms"),
    LegacyField("spec.amiSelector", "spec.amiSelectorTerms"),
    LegacyField("spec.launchTemplate", "the fields of the EC2NodeClass"),
)
