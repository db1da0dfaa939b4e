"""Ways to the API server as a ServiceAccount."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cluster.kubeconfig import write_kubeconfig

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane


def account_kubeconfig(api: Api, control_plane: ControlPlane, account: Mapping[str, Any], file: Path) -> Path:
    """Write a kubeconfig with a token of a ServiceAccount that exists; returns the file."""
    request = {**account, "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = api.create_subresource(account, "token", request)
    assert answer.ok, answer.message
    return write_kubeconfig(file, control_plane.url, control_plane.ca_file, str(answer.body["status"]["token"]))
