"""The ServiceAccount of gpugate, with the rights that are generated for it and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cluster.namespaces import namespace_object

from gpugate.webhook.registration.rbac import rbac

if TYPE_CHECKING:
    from cluster.api import Api

    from gpugate.policies.engine.ruleset import Ruleset

NAMESPACE = "gpugate-system"
NAME = "gpugate"


def made_account(api: Api) -> str:
    """Make namespace and account; returns a token, which the API server signs for an hour."""
    namespace = namespace_object(NAMESPACE)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE}}
    _applied(api, namespace, account)
    request = {**account, "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = api.create_subresource(account, "token", request)
    assert answer.ok, answer.message
    return str(answer.body["status"]["token"])


def grant(api: Api, ruleset: Ruleset) -> None:
    """Let it read what rules look up, and nothing else."""
    _applied(api, *rbac(ruleset, NAMESPACE, NAME))


def _applied(api: Api, *objects: dict[str, Any]) -> None:
    for each in objects:
        answer = api.apply(each, force=True)
        assert answer.ok, answer.message
