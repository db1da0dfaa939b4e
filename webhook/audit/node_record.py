"""Reads what is to be remembered of a node."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk import quantity
from gpugate.webhook.audit.inventory import NodeRecord
from gpugate.webhook.audit.room import room_of_node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import Platform

# Karpenter v1.14, and its versions before v0.32.
_POOL_LABELS: Final = ("karpenter.sh/nodepool", "karpenter.sh/provisioner-name")
# The second until Kubernetes 1.17.
_TYPE_LABELS: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
# What a price hangs on, also of a node whose GPUs are offered through DRA alone.
_PRICE_LABELS: Final = ("karpenter.sh/capacity-type", "topology.kubernetes.io/region")


def node_record(node: Field, platform: Platform) -> NodeRecord:
    """Return what prices and places need to know of a node."""
    labels = node["metadata", "labels"].labels
    accelerators = dict(_accelerators(node, platform))
    return NodeRecord(
        name=node["metadata", "name"].text,
        node_pool=next((labels[key] for key in _POOL_LABELS if key in labels), ""),
        instance_type=next((labels[key] for key in _TYPE_LABELS if key in labels), ""),
        accelerators=accelerators,
        labels=labels if accelerators else {key: labels[key] for key in _PRICE_LABELS if key in labels},
        room=room_of_node(node),
    )


def _accelerators(node: Field, platform: Platform) -> Iterator[tuple[str, int]]:
    for name, amount in (node["status", "allocatable"] or node["status", "capacity"]).items():
        if platform.is_accelerator(name):
            try:
                count = math.floor(quantity.parse(amount.value))
            except quantity.QuantityError:
                continue
            if count:
                yield name, count
