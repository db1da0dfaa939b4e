"""What gpugate says of itself: readiness, metrics, and the rules that it judges by."""

from __future__ import annotations

import urllib.error
import urllib.request
from contextlib import closing
from typing import TYPE_CHECKING

from cluster.connections import Connections
from cluster.metrics import total

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT_SECONDS = 10
_REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "e2e",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "e2e",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "e2e"},
        "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "e2e"}},
    },
}


class Health:
    """Asks a server, whose workers share its ports, so that any of them answers."""

    def __init__(self, url: str, health_url: str, authority: Path) -> None:
        self._url = url
        self._health_url = health_url
        self._authority = authority

    def ready(self) -> bool:
        """Tell whether it says that it is."""
        try:
            self._read("/readyz")
        except urllib.error.HTTPError as error:
            error.close()
            return False
        return True

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric, summed over what the labels leave open."""
        return total(self._read("/metrics"), name, labels)

    def exposition(self) -> str:
        """Return all metrics in the text format."""
        return self._read("/metrics")

    def shadow(self) -> bytes:
        """Return what its shadow policy file would decide differently, as JSON."""
        return self._read("/shadow").encode()

    def generation(self) -> str:
        """Return the generation of the rules that a worker judges by, asked over a connection of its own."""
        with closing(Connections(self._url, self._authority)) as connections:
            answer = connections.request("POST", "/validate", _REVIEW)
        return str(answer.body["response"]["auditAnnotations"]["generation"])

    def _read(self, path: str) -> str:
        with urllib.request.urlopen(f"{self._health_url}{path}", timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 -- on loopback
            return str(answer.read().decode())
