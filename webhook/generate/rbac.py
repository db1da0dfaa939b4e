"""Writes what gpugate may do in a cluster: look up what rules need and keep certificates; audit, and write reports.

Source: `k8s.io/api` rbac/v1 types.go, v0.36. Which versions a cluster serves, it tells everybody who is authenticated
(the ClusterRole `system:discovery`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.ruleset import Needs
from gpugate.webhook.generate.audited_resources import audited_resources
from gpugate.webhook.report.report_kinds import REPORT_KINDS

if TYPE_CHECKING:
    from gpugate.policies.engine.ruleset import Ruleset

_API: Final = "rbac.authorization.k8s.io"
_KEEPER: Final = "gpugate-certificates"
_AUDIT: Final = "gpugate-audit"


def rbac(ruleset: Ruleset, namespace: str, service_account: str) -> list[dict[str, Any]]:
    """Return the ClusterRole for some rules, and its binding to a ServiceAccount."""
    resources: dict[str, list[str]] = {}
    for kind in sorted(Needs(ruleset.rules).kinds, key=lambda kind: (kind.group, kind.plural)):
        resources.setdefault(kind.group, []).append(kind.plural)
    rules = [
        {"apiGroups": [group], "resources": names, "verbs": ["get", "list", "watch"]}
        for group, names in resources.items()
    ]
    return _granted("gpugate", rules, namespace, service_account)


def keeper_rbac(
    namespace: str, service_account: str, secret: str, lease: str, configuration: str
) -> list[dict[str, Any]]:
    """Return what lets a ServiceAccount keep certificates, in its own namespace and in both configurations of a name.

    Each object is named, and nothing can be listed. Whoever may `watch` an object by its name may do so when the field
    selector names it. Only `create` cannot be bound to a name (kube-apiserver v1.36.3).
    """
    return [
        *_granted(_KEEPER, keeper_rules(secret, lease), namespace, service_account, within=namespace),
        *_granted(_KEEPER, publisher_rules(configuration, namespace), namespace, service_account),
    ]


def keeper_rules(secret: Any, lease: Any) -> list[dict[str, Any]]:
    """Return the rules of the Role that keeps authorities in a Secret and elects who writes them.

    Names may be whatever stands for one, as in the templates of a chart.
    """
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    secrets = {"apiGroups": [""], "resources": ["secrets"]}
    return [
        {**secrets, "verbs": ["create"]},
        {**secrets, "resourceNames": [secret], "verbs": ["get", "watch", "update"]},
        {**leases, "verbs": ["create"]},
        {**leases, "resourceNames": [lease], "verbs": ["get", "update"]},
    ]


def publisher_rules(configuration: Any, namespace: Any) -> list[dict[str, Any]]:
    """Return the rules of the ClusterRole that publishes a bundle, and names the Namespace as owner so that both go."""
    return [
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
            "resourceNames": [configuration],
            "verbs": ["get", "watch", "patch"],
        },
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [namespace], "verbs": ["get"]},
    ]


def audit_rbac(
    ruleset: Ruleset, namespace: str, service_account: str, *, reports: bool = False
) -> list[dict[str, Any]]:
    """Return what lets a ServiceAccount audit a cluster with some rules; `reports`: and write what it finds into it.

    Nothing of it reads Secrets.
    """
    granted = _granted(_AUDIT, audit_rules(ruleset), namespace, service_account)
    return granted + (_granted(f"{_AUDIT}-reports", report_rules(), namespace, service_account) if reports else [])


def audit_rules(ruleset: Ruleset) -> list[dict[str, Any]]:
    """Return the rules of the ClusterRole that reads all that an audit looks at; single objects as owners of others."""
    resources: dict[str, list[str]] = {}
    for kind in sorted((each.kind for each in audited_resources(ruleset)), key=lambda kind: (kind.group, kind.plural)):
        resources.setdefault(kind.group, []).append(kind.plural)
    return [{"apiGroups": [group], "resources": names, "verbs": ["get", "list"]} for group, names in resources.items()]


def report_rules() -> list[dict[str, Any]]:
    """Return the rules of the ClusterRole that keeps report objects in either group; their names are uids of others."""
    return [
        {
            "apiGroups": [kinds.namespaced.group],
            "resources": sorted(kind.plural for kind in kinds.both),
            "verbs": ["get", "list", "create", "update", "delete"],
        }
        for kinds in REPORT_KINDS
    ]


def _granted(
    name: str, rules: list[dict[str, Any]], namespace: str, service_account: str, within: str = ""
) -> list[dict[str, Any]]:
    """Return a role and its binding: of one namespace, or of the cluster."""
    kind = "Role" if within else "ClusterRole"
    metadata: dict[str, Any] = {"name": name, "labels": {"app.kubernetes.io/name": "gpugate"}}
    if within:
        metadata["namespace"] = within
    return [
        {"apiVersion": f"{_API}/v1", "kind": kind, "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{_API}/v1",
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _API, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": service_account}],
        },
    ]
