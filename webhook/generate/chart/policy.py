"""The ConfigMap with the policy file."""

from __future__ import annotations

from gpugate.webhook.generate.chart.names import FULL_NAME, POLICY_FILE, metadata
from gpugate.webhook.generate.chart.terms import Node, text


def policy() -> Node:
    """Return it; the file is JSON, which is YAML too, so that both ways to make it write the same."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(text(FULL_NAME, "-policy")),
        "data": {"policy.yaml": POLICY_FILE},
    }
