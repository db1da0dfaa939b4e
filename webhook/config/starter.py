"""The policy file that `gpugate config init` writes: it sets the names that each platform chooses for itself.

Until a platform sets them, policies that rest on such names are notes in `check` and warnings at admission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import parse_config
from gpugate.webhook.manifests.documents import Document, read_text

if TYPE_CHECKING:
    from gpugate.policies.engine.config import PolicyConfig

FILE: Final = "policy.yaml"

POLICY_FILE: Final = """\
# The policy file of this platform, for `gpugate check`, the webhook and the audit.
# `gpugate config schema` prints its JSON schema; `gpugate explain POLICY` describes the parameters of a policy.
apiVersion: gpugate.dev/v1
kind: PolicyConfig

platform:
  # How the class of a workload is read: labels of Pods and node pools, node selectors of Pods, names of namespaces.
  workload_classes:
    labels:
      workload: {training: training, inference: inference}
    node_selectors:
      node-type: {gpu-training: training, gpu-inference: inference, gpu-spot: inference}
    namespaces: {"ml-training*": training, "ml-serving*": inference, "inference*": inference}

policies:
  # AWS tags that the bill is split by, spelled as AWS Billing knows them.
  nodeclasses/missing-cost-tags:
    params:
      required: [Environment, Team, CostCenter]
  # Labels that the cost of nodes is split by.
  nodepools/missing-cost-labels:
    params:
      required: [team, cost-center]
  # Labels that the cost of Pods is split by; GPU Pods inherit them from their namespace.
  pods/missing-cost-labels:
    params:
      required: [team, cost-center]
"""


def configuration() -> PolicyConfig:
    """Return the configuration that the file holds."""
    (document,) = (part for part in read_text(FILE, POLICY_FILE) if isinstance(part, Document))
    return parse_config(document.value)
