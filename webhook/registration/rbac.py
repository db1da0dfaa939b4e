"""Generate the RBAC rules of the webhook, the certificate keeper and the audit.

Source: `k8s.io/api` rbac/v1 types.go, v0.36. Discovery needs no rules, because every authenticated user has the ClusterRole
`system:discovery`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.ruleset import Needs
from gpugate.policies.sdk import objects
from gpugate.policies.sdk.node_types import NODE_TYPE_NEEDS
from gpugate.policies.sdk.objects import Kind
from gpugate.policies.sdk.pod_templates import TEMPLATES
from gpugate.webhook.registration.entries import workload_kind
from gpugate.webhook.registration.report_kinds import REPORT_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.engine.ruleset import Ruleset

NODE: Final = Kind("", ("v1",), "Node", "nodes", namespaced=False)
# Kinds that offer GPUs, request them, or scale workloads.
_PRICED: Final = (
    NODE,
    objects.NODE_POOL,
    objects.RESOURCE_CLAIM,
    objects.RESOURCE_CLAIM_TEMPLATE,
    objects.SCALED_OBJECT,
    objects.SCALED_JOB,
    objects.HORIZONTAL_POD_AUTOSCALER,
)


@dataclass(frozen=True, slots=True)
class AuditedResource:
    """A resource that the audit lists.

    Attributes:
        kind: its kind, with all supported versions; `*` for any.
        evaluated: whether policies evaluate its objects, or Pod templates in them.
        needed: whether policies look up its objects.
    """

    kind: Kind
    evaluated: bool = False
    needed: bool = False


def audited_resources(ruleset: Ruleset) -> Sequence[AuditedResource]:
    """Return every resource that an audit with a ruleset reads, each once.

    Owners come before the objects that they own; Pods come last.
    """
    by_resource: dict[tuple[str, str], AuditedResource] = {}

    def add(kind: Kind, *, evaluated: bool = False, needed: bool = False) -> None:
        known = by_resource.get((kind.group, kind.plural)) or AuditedResource(
            replace(kind, versions=(), subresource="")
        )
        versions = tuple(dict.fromkeys((*known.kind.versions, *kind.versions)))
        by_resource[kind.group, kind.plural] = AuditedResource(
            replace(known.kind, versions=("*",) if "*" in versions else versions),
            evaluated=known.evaluated or evaluated,
            needed=known.needed or needed,
        )

    for rule in ruleset.rules:
        for handler in rule.policy.handlers:
            for kind in handler.kinds:
                if not kind.subresource:
                    add(kind, evaluated=True)
    pods = ("", "pods") in by_resource
    for group, name in TEMPLATES if pods else ():
        add(workload_kind(group, name), evaluated=True)
    types = NODE_TYPE_NEEDS if ruleset.config.platform.catalogue else ()
    for kind in Needs(ruleset.rules, types).kinds:
        add(kind, needed=True)
    # The cost needs Pods and their owners, even if no policy evaluates them.
    for kind in (*_PRICED, objects.REPLICA_SET, objects.JOB, objects.POD):
        add(kind)
    return sorted(by_resource.values(), key=lambda resource: _position(resource.kind))


# The owners of each kind come before it, here or among the other kinds.
_MADE_BY_OTHERS: Final = ("raycluster", "deployment", "cronjob", "statefulset", "job", "replicaset", "pod")


def _position(kind: Kind) -> tuple[int, str, str]:
    order = {name: position for position, name in enumerate(_MADE_BY_OTHERS, 1)}
    builtin = kind.group in {"", "apps", "batch", "ray.io"}
    return order.get(kind.name.lower(), 0) if builtin else 0, kind.group, kind.plural


_API: Final = "rbac.authorization.k8s.io"
_KEEPER: Final = "gpugate-certificates"
_AUDIT: Final = "gpugate-audit"
_EVENTS: Final = "gpugate-events"


def rbac(ruleset: Ruleset, namespace: str, service_account: str) -> list[dict[str, Any]]:
    """Return the ClusterRole of the webhook for a ruleset, and its binding to a ServiceAccount."""
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
    """Return the roles and bindings that let a ServiceAccount manage certificates and publish them in both configurations.

    All rules name their objects, and none allows `list`. A named object can be watched with a field selector for its name.
    Only `create` cannot be limited to a name (kube-apiserver v1.36.3).
    """
    return [
        *_granted(_KEEPER, keeper_rules(secret, lease), namespace, service_account, within=namespace),
        *_granted(_KEEPER, publisher_rules(configuration, namespace), namespace, service_account),
    ]


def event_rbac(namespace: str, service_account: str) -> list[dict[str, Any]]:
    """Return the Role that lets the webhook create Events on its policies, and its binding."""
    return _granted(_EVENTS, event_rules(), namespace, service_account, within=namespace)


def event_rules() -> list[dict[str, Any]]:
    """Return the rules of the Role that creates Events."""
    return [{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]}]


def keeper_rules(secret: Any, lease: Any) -> list[dict[str, Any]]:
    """Return the rules of the Role for the Secret of the CAs and the Lease of the leader.

    Names may also be Go templates of the chart.
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
    """Return the rules of the ClusterRole that publishes the CA bundle, and reads the Namespace for owner references."""
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
    """Return the RBAC objects of an audit with a ruleset; `reports` adds those for report objects.

    None of them allows reading Secrets.
    """
    granted = _granted(_AUDIT, audit_rules(ruleset), namespace, service_account)
    return granted + (_granted(f"{_AUDIT}-reports", report_rules(), namespace, service_account) if reports else [])


def audit_rules(ruleset: Ruleset) -> list[dict[str, Any]]:
    """Return the rules of the ClusterRole that reads all audited resources; `get` is for single owners."""
    resources: dict[str, list[str]] = {}
    for kind in sorted(
        (resource.kind for resource in audited_resources(ruleset)), key=lambda kind: (kind.group, kind.plural)
    ):
        resources.setdefault(kind.group, []).append(kind.plural)
    return [{"apiGroups": [group], "resources": names, "verbs": ["get", "list"]} for group, names in resources.items()]


def report_rules() -> list[dict[str, Any]]:
    """Return the rules of the ClusterRole that writes report objects in both API groups."""
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
