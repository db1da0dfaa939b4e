"""Writes what the webhook may read of a cluster: the kinds that the rules in force look up, and nothing else.

Source: `k8s.io/api` rbac/v1 types.go, v0.36. Which versions a cluster serves, it tells everybody who is authenticated
(the ClusterRole `system:discovery`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.needs import Needs

if TYPE_CHECKING:
    from gpugate.policies.engine.ruleset import Ruleset

_API: Final = "rbac.authorization.k8s.io"


def rbac(ruleset: Ruleset, namespace: str, service_account: str) -> list[dict[str, Any]]:
    """Return the ClusterRole for some rules, and its binding to a ServiceAccount."""
    resources: dict[str, list[str]] = {}
    for kind in sorted(Needs(ruleset.rules).kinds, key=lambda kind: (kind.group, kind.plural)):
        resources.setdefault(kind.group, []).append(kind.plural)
    metadata = {"name": "gpugate", "labels": {"app.kubernetes.io/name": "gpugate"}}
    role = {
        "apiVersion": f"{_API}/v1",
        "kind": "ClusterRole",
        "metadata": metadata,
        "rules": [
            {"apiGroups": [group], "resources": names, "verbs": ["get", "list", "watch"]}
            for group, names in resources.items()
        ],
    }
    binding = {
        "apiVersion": f"{_API}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _API, "kind": "ClusterRole", "name": "gpugate"},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": service_account}],
    }
    return [role, binding]
