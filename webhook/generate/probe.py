"""The question by which anybody sees whether an API server reaches the webhook: what is sent, and the entry that sends it.

It is a ConfigMap for the webhook's own namespace, dry run, with a nonce that the webhook repeats in a warning. Each
configuration has an entry for it, whatever the policies are. No other request matches that entry, so that it may say
`failurePolicy: Fail` from the first moment: only then does an API server tell whoever asks why it does not reach a
webhook (`k8s.io/apiserver` pkg/admission/plugin/webhook, v0.36.3; under Ignore it tells its own log).
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
    """Return what is special about the webhook entry of a phase, where the webhook runs in this namespace.

    In other namespaces nothing is evaluated, and in this one nothing is sent that anybody would want to store.
    """
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
    """Return the object to send."""
    metadata = {"name": f"gpugate-probe-{nonce[:8]}", "namespace": namespace, "annotations": {ANNOTATION: nonce}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def answer(phase: str, nonce: str) -> str:
    """Return the warning that the webhook answers with."""
    return f"gpugate answered {nonce} at {phase}"
