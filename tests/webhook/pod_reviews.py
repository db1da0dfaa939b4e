"""AdmissionReviews of Pods, as bytes, and the ASGI scope of a request that carries one."""

from __future__ import annotations

import json
from typing import Any


def pod_review(pod: dict[str, Any], namespace: str = "team") -> bytes:
    """Return a review of a Pod that is created."""
    request = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "userInfo": {},
        "operation": "CREATE",
        "name": "p",
        "namespace": namespace,
        "object": pod,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def scope(path: str, timeout: str) -> dict[str, Any]:
    """Return the scope of a POST that the API server waits so long for."""
    return {
        "type": "http",
        "method": "POST",
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "query_string": f"timeout={timeout}".encode(),
        "headers": [(b"content-type", b"application/json")],
    }
