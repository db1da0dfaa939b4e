"""Writes what tells an API server which requests to send: both webhook configurations, from the rules in force.

Source: `k8s.io/api` admissionregistration/v1 types.go, v0.36. Requests wait for an answer where that is asked for and
something can be refused or changed; all others go through while the webhook does not answer.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gpugate.webhook.generate import probe
from gpugate.webhook.generate.entries import entries
from gpugate.webhook.generate.match_conditions import not_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.generate.entries import Entry, Phase, RiskGroup

_Object: TypeAlias = dict[str, Any]  # Any: the JSON edge

# Where Karpenter's chart puts its controller, by its documentation and by its default.
KARPENTER_USERS: Final = ("system:serviceaccount:kube-system:karpenter", "system:serviceaccount:karpenter:karpenter")
# Seconds: a mutation is one of several webhooks in a row, and a slow one holds up every request.
TIMEOUT_SECONDS: Final[dict[Phase, int]] = {"mutate": 2, "validate": 3}
# The API server writes it on every namespace, and nobody can change it.
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
# What holds for every entry.
COMMON: Final = {"matchPolicy": "Equivalent", "sideEffects": "None", "admissionReviewVersions": ["v1"]}


@dataclass(frozen=True, slots=True)
class Server:
    """Where the webhook answers.

    Attributes:
        ca_bundle: the authorities that its certificate is checked against, PEM; empty where it publishes them itself.
        namespace: the namespace it runs in, from which nothing is sent.
        url: its address, as `https://HOST:PORT`; empty where a Service leads to it.
        service: the Service in that namespace.
    """

    ca_bundle: bytes
    namespace: str = "gpugate"
    url: str = ""
    service: str = "gpugate"

    def client_config(self, path: str) -> _Object:
        """Return how the API server reaches a path."""
        if self.url:
            where: _Object = {"url": f"{self.url.rstrip('/')}/{path}"}
        else:
            where = {"service": {"namespace": self.namespace, "name": self.service, "path": f"/{path}", "port": 443}}
        if not self.ca_bundle:
            # A field that is not applied is left as whoever publishes it has it.
            return where
        return {**where, "caBundle": base64.b64encode(self.ca_bundle).decode("ascii")}


def webhook_configurations(
    ruleset: Ruleset,
    server: Server,
    *,
    fail: Collection[RiskGroup] = (),
    fail_mutating: Collection[RiskGroup] = (),
    karpenter_users: Sequence[str] = KARPENTER_USERS,
) -> tuple[_Object, _Object]:
    """Return the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration for some rules.

    Args:
        ruleset: the rules; a policy file that turns on more needs other configurations.
        server: where they are judged.
        fail: the groups of which a request that could be refused fails when the webhook does not answer.
        fail_mutating: the same for one that could be changed; what it becomes is validated anyway.
        karpenter_users: who writes node pools and NodeClaims without being asked about it.
    """

    def configuration(phase: Phase, failing: Collection[RiskGroup], **members: Any) -> Iterable[_Object]:
        outside = outside_of({*ruleset.config.excluded_namespaces, server.namespace})
        reached = {
            "clientConfig": server.client_config(phase),
            "timeoutSeconds": TIMEOUT_SECONDS[phase],
            **COMMON,
            **members,
        }
        for entry in entries(ruleset, phase):
            yield {
                "name": entry.name,
                "rules": entry.rules,
                "failurePolicy": "Fail" if entry.may_wait and entry.group in failing else "Ignore",
                "matchConditions": _conditions(entry, karpenter_users),
                "namespaceSelector": outside,
                **reached,
            }
        yield {**probe.entry(phase, server.namespace), **reached}

    return (
        _configuration("Mutating", configuration("mutate", fail_mutating, reinvocationPolicy="IfNeeded")),
        _configuration("Validating", configuration("validate", fail)),
    )


def outside_of(namespaces: Collection[str]) -> _Object:
    """Return a selector for every other namespace."""
    return {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "NotIn", "values": sorted(namespaces)}]}


def _conditions(entry: Entry, karpenter_users: Sequence[str]) -> list[_Object]:
    exempt = [not_of(karpenter_users)] if entry.group.written_by_karpenter and karpenter_users else []
    return [*exempt, *entry.conditions]


def _configuration(phase: str, webhooks: Iterable[_Object]) -> _Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{phase}WebhookConfiguration",
        "metadata": {"name": "gpugate", "labels": {"app.kubernetes.io/name": "gpugate"}},
        "webhooks": list(webhooks),
    }
