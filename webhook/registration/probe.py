"""The probe that tests whether an API server reaches the webhook: its request and its webhook entry.

The request creates a ConfigMap in the webhook's namespace as a dry run, with a nonce that the webhook returns in a warning.
Each configuration has an entry for it. No other request matches this entry, so it always has `failurePolicy: Fail`: only then
the API server returns why it does not reach a webhook (`k8s.io/apiserver` pkg/admission/plugin/webhook, v0.36.3; under Ignore
the reason is only in its log).
"""

from __future__ import annotations

import re
from typing import Any, Final

ANNOTATION: Final = "gpugate.dev/probe"
NONCE: Final = re.compile("[0-9a-f]{8,64}")


def entry_name(phase: str) -> str:
    """Return the name of the webhook entry for a phase, `mutate` or `validate`."""
    return f"probe.{phase}.gpugate.dev"


def entry(phase: str, namespace: str) -> dict[str, Any]:
    """Return the specific fields of the probe entry of a phase, for a webhook in this namespace."""
    return {
        "name": entry_name(phase),
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["configmaps"],
                "operations": ["CREATE"],
                "scope": "Namespaced",
            }
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "matchConditions": [
            {
                "name": "is-a-probe",
                "expression": f"request.?dryRun.orValue(false) && object.metadata.?annotations[?'{ANNOTATION}'].hasValue()",
            }
        ],
    }


def question(namespace: str, nonce: str) -> dict[str, Any]:
    """Return the object of the request."""
    metadata = {"name": f"gpugate-probe-{nonce[:8]}", "namespace": namespace, "annotations": {ANNOTATION: nonce}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def answer(phase: str, nonce: str) -> str:
    """Return the warning in the webhook's response."""
    return f"gpugate answered {nonce} at {phase}"
