"""Who the webhook is to the API server, and what it may do there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import PolicyConfig
from gpugate.webhook.generate.chart.names import AUTHORITIES, FULL_NAME, IS_SELF, NAMESPACE, SERVICE_ACCOUNT, metadata
from gpugate.webhook.generate.chart.terms import ABSENT, If, Node, Value, both
from gpugate.webhook.generate.entries import whole_catalogue
from gpugate.webhook.generate.rbac import keeper_rules, publisher_rules, rbac

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_API: Final = "rbac.authorization.k8s.io"
_MAKES_RIGHTS: Final = Value("rbac.create")


def service_account() -> Node:
    """Return the ServiceAccount of the webhook."""
    made: Node = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(
            SERVICE_ACCOUNT, annotations=If(Value("serviceAccount.annotations"), Value("serviceAccount.annotations"))
        ),
    }
    return If(Value("serviceAccount.create"), made)


def rights() -> Iterator[Node]:
    """Yield what lets it look up objects, and keep its certificates."""
    looks_up, _ = rbac(whole_catalogue(PolicyConfig()), "", "")
    yield from (If(_MAKES_RIGHTS, each) for each in cluster_role(FULL_NAME, looks_up["rules"], SERVICE_ACCOUNT))
    for each in (
        *role(AUTHORITIES, keeper_rules(AUTHORITIES, FULL_NAME), SERVICE_ACCOUNT),
        *cluster_role(AUTHORITIES, publisher_rules(FULL_NAME, NAMESPACE), SERVICE_ACCOUNT),
    ):
        yield If(both(_MAKES_RIGHTS, IS_SELF), each)


def cluster_role(name: Node, rules: Sequence[Node], account: Node, annotations: Node = ABSENT) -> Iterator[Node]:
    """Yield a ClusterRole and its binding to a ServiceAccount of the release."""
    yield {
        "apiVersion": f"{_API}/v1",
        "kind": "ClusterRole",
        "metadata": metadata(name, namespaced=False, annotations=annotations),
        "rules": list(rules),
    }
    yield {
        "apiVersion": f"{_API}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata(name, namespaced=False, annotations=annotations),
        "roleRef": {"apiGroup": _API, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}],
    }


def role(name: Node, rules: Sequence[Node], account: Node, annotations: Node = ABSENT) -> Iterator[Node]:
    """Yield a Role and its binding to a ServiceAccount of the release."""
    yield {
        "apiVersion": f"{_API}/v1",
        "kind": "Role",
        "metadata": metadata(name, annotations=annotations),
        "rules": list(rules),
    }
    yield {
        "apiVersion": f"{_API}/v1",
        "kind": "RoleBinding",
        "metadata": metadata(name, annotations=annotations),
        "roleRef": {"apiGroup": _API, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}],
    }
