"""Generate both webhook configurations from a ruleset.

Entries have `failurePolicy: Fail` only if it is selected for their group and they can deny or mutate. All other requests are
allowed while the webhook is unavailable. Source: `k8s.io/api` admissionregistration/v1 types.go, v0.36.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gpugate.webhook.registration import probe
from gpugate.webhook.registration.entries import entries
from gpugate.webhook.registration.match_conditions import not_of
from gpugate.webhook.registration.own_requests import entry_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.registration.entries import Entry, Phase, RiskGroup
    from gpugate.webhook.registration.own_requests import Added

_Object: TypeAlias = dict[str, Any]  # Any: the JSON edge

# The ServiceAccounts of Karpenter's controller, in the namespaces of its documentation and of its chart.
KARPENTER_USERS: Final = ("system:serviceaccount:kube-system:karpenter", "system:serviceaccount:karpenter:karpenter")
# In seconds. Mutating webhooks run one after the other, so each of them must be fast.
TIMEOUT_SECONDS: Final[dict[Phase, int]] = {"mutate": 2, "validate": 3}
# The API server sets this label on every namespace, and it is immutable.
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
# The common fields of all entries.
COMMON: Final = {"matchPolicy": "Equivalent", "sideEffects": "None", "admissionReviewVersions": ["v1"]}


@dataclass(frozen=True, slots=True)
class Server:
    """The address of the webhook.

    Attributes:
        ca_bundle: the CAs of its serving certificate, PEM; empty if the webhook publishes them itself.
        namespace: its namespace, whose objects are not sent.
        url: its URL, `https://HOST:PORT`; empty if it is reached through a Service.
        service: its Service in that namespace.
    """

    ca_bundle: bytes
    namespace: str = "gpugate"
    url: str = ""
    service: str = "gpugate"

    def client_config(self, path: str) -> _Object:
        """Return the clientConfig for a path."""
        if self.url:
            where: _Object = {"url": f"{self.url.rstrip('/')}/{path}"}
        else:
            where = {"service": {"namespace": self.namespace, "name": self.service, "path": f"/{path}", "port": 443}}
        if not self.ca_bundle:
            # Applying the configuration then does not overwrite the published caBundle.
            return where
        return {**where, "caBundle": base64.b64encode(self.ca_bundle).decode("ascii")}


def webhook_configurations(
    ruleset: Ruleset,
    server: Server,
    *,
    fail: Collection[RiskGroup] = (),
    fail_mutating: Collection[RiskGroup] = (),
    karpenter_users: Sequence[str] = KARPENTER_USERS,
    own: Mapping[Phase, Added] | None = None,
) -> tuple[_Object, _Object]:
    """Return the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration for a ruleset.

    Args:
        ruleset: the ruleset; a policy file that enables more policies needs other configurations.
        server: the address of the webhook.
        fail: the groups with `failurePolicy: Fail` for requests that can be denied.
        fail_mutating: the same for requests that can be mutated; the result is validated in any case.
        karpenter_users: the users whose changes of NodePools and NodeClaims are not sent.
        own: the entries of policies outside the library, if the ruleset does not contain them.
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
        if own and own[phase].rules:
            yield {
                "name": entry_name(phase),
                "rules": own[phase].rules,
                "failurePolicy": "Ignore",
                "matchConditions": [*([not_of(karpenter_users)] if karpenter_users else []), *own[phase].conditions],
                "namespaceSelector": outside,
                **reached,
            }
        yield {**probe.entry(phase, server.namespace), **reached}

    return (
        _configuration("Mutating", configuration("mutate", fail_mutating, reinvocationPolicy="IfNeeded")),
        _configuration("Validating", configuration("validate", fail)),
    )


def outside_of(namespaces: Collection[str]) -> _Object:
    """Return a selector for all other namespaces."""
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
