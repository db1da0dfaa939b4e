"""Every policy there is, in evaluation order: mutations later in the list see what earlier ones made."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from gpugate.policies.sdk.policy import Policy, policy_in

# An id is the path of its file. New ones go beside their family; claims come before the tolerations that they need.
IDS: Final = (
    "nodeclasses/missing-cost-tags",
    "nodepools/incomplete-node-class-ref",
    "nodepools/legacy-api",
    "nodepools/single-instance-type",
    "pods/mig-without-claim",
    "pods/missing-gpu-toleration",
    "pods/unprotected-training",
    "pods/missing-cost-labels",
    "scaling/hpa-conflict",
    "scaling/unbounded-replicas",
)


def _policy(policy_id: str) -> Policy:
    return policy_in(import_module("gpugate.policies." + policy_id.replace("/", ".").replace("-", "_")))


CATALOG: Final[tuple[Policy, ...]] = tuple(_policy(policy_id) for policy_id in IDS)
