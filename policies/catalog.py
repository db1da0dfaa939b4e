"""Every policy there is, in evaluation order: mutations later in the list see what earlier ones made."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from gpugate.policies.sdk.policy import Policy, policy_in

# An id is the path of its file. Within a family mutations come first, and among them claims before tolerations, which
# Pods with claims need.
IDS: Final = (
    "claims/admin-access",
    "claims/invalid-device-class",
    "claims/invalid-request",
    "claims/missing-mig-profile",
    "claims/missing-template",
    "claims/removed-api",
    "claims/whole-node-allocation",
    "disruption/blocking-pdb",
    "disruption/missing-inference-pdb",
    "nodeclasses/exposed-metadata",
    "nodeclasses/invalid-tag",
    "nodeclasses/missing-cost-tags",
    "nodeclasses/unencrypted-volume",
    "nodeclasses/unexpanded-placeholder",
    "nodeclasses/unpinned-ami",
    "nodepools/budget-blocks-empty",
    "nodepools/consolidation-disabled",
    "nodepools/forceful-expiry",
    "nodepools/incomplete-node-class-ref",
    "nodepools/invalid-budget",
    "nodepools/legacy-api",
    "nodepools/legacy-field",
    "nodepools/legacy-key",
    "nodepools/missing-cost-labels",
    "nodepools/missing-gpu-limit",
    "nodepools/missing-gpu-taint",
    "nodepools/narrow-spot",
    "nodepools/pool-wide-do-not-disrupt",
    "nodepools/shared-by-classes",
    "nodepools/single-instance-type",
    "nodepools/training-consolidates",
    "nodepools/training-on-spot",
    "nodepools/unbounded-training-disruption",
    "nodepools/unknown-requirement-value",
    "nodepools/untolerated-taint",
    "pods/mig-without-claim",
    "pods/missing-gpu-toleration",
    "pods/unprotected-training",
    "pods/missing-cost-labels",
    "pods/missing-shared-memory",
    "pods/abrupt-spot-shutdown",
    "pods/bare-gpu-pod",
    "pods/endless-job",
    "pods/gpu-node-squatter",
    "pods/hidden-gpu-access",
    "pods/impatient-probe",
    "pods/invalid-do-not-disrupt",
    "pods/invalid-gpu-quantity",
    "pods/kept-ray-cluster",
    "pods/late-node-label",
    "pods/misplaced-do-not-disrupt",
    "pods/missing-checkpoint",
    "pods/missing-requests",
    "pods/mixed-gpu-resources",
    "pods/oversized-requests",
    "pods/parallelism-mismatch",
    "pods/partial-gang",
    "pods/pinned-node-name",
    "pods/server-without-gpu",
    "pods/surging-rollout",
    "pods/time-sliced-models",
    "pods/training-on-spot",
    "pods/unknown-mig-profile",
    "pods/wildcard-toleration",
    "pods/zonal-volume",
    "queues/missing-queue",
    "quotas/ineffective-gpu-quota",
    "scaling/average-of-average",
    "scaling/empty-result-is-zero",
    "scaling/gpu-ceiling",
    "scaling/hpa-conflict",
    "scaling/ignored-field",
    "scaling/incomplete-trigger",
    "scaling/missing-fallback",
    "scaling/missing-target",
    "scaling/multiple-series",
    "scaling/paused-above-ceiling",
    "scaling/pinned-replicas",
    "scaling/saturating-signal",
    "scaling/scale-from-zero-deadlock",
    "scaling/thrashing",
    "scaling/unbounded-replicas",
    "scaling/wrong-metric",
    "scaling/zero-floor-in-production",
)


def _policy(policy_id: str) -> Policy:
    return policy_in(import_module("gpugate.policies." + policy_id.replace("/", ".").replace("-", "_")))


CATALOG: Final[tuple[Policy, ...]] = tuple(_policy(policy_id) for policy_id in IDS)
