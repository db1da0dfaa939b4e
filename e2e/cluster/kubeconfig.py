"""Writes kubeconfig files, as JSON, which every reader of YAML takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.certificates import Files


def write_kubeconfig(file: Path, url: str, ca_file: Path, credentials: Files | str) -> Path:
    """Write the way to an API server, with a client certificate or a bearer token; returns the file."""
    if isinstance(credentials, str):
        user = {"token": credentials}
    else:
        user = {"client-certificate": str(credentials.certificate), "client-key": str(credentials.key)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": {"server": url, "certificate-authority": str(ca_file)}}],
        "users": [{"name": "e2e", "user": user}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        "current-context": "e2e",
    }
    file.write_text(json.dumps(config, indent=2), encoding="utf-8")
    return file
