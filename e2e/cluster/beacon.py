"""Tells when the API server has taken up a webhook configuration: it watches them, so that it does a little later.

A configuration is given one more entry, which sends a ConfigMap of one name, and the name is another each time.
"""

from __future__ import annotations

import base64
import copy
import uuid
from typing import Any


class Beacon:
    """A ConfigMap that is asked about by the configurations that were marked with it, and by no other."""

    def __init__(self) -> None:
        self._name = f"beacon-{uuid.uuid4().hex[:8]}"

    @property
    def object(self) -> dict[str, Any]:
        """What to create, as a dry run."""
        metadata = {"name": self._name, "namespace": "default"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

    def marked(self, configuration: dict[str, Any], url: str, ca_bundle: bytes) -> dict[str, Any]:
        """Return a configuration that sends the beacon to a URL too."""
        entry = {
            "name": "beacon.e2e.gpugate.dev",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "clientConfig": {"url": url, "caBundle": base64.b64encode(ca_bundle).decode()},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
            ],
            "matchConditions": [{"name": "beacon", "expression": f"object.metadata.name == '{self._name}'"}],
        }
        changed = copy.deepcopy(configuration)
        changed["webhooks"].append(entry)
        return changed
