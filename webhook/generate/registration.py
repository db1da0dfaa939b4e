"""Writes what tells an API server which requests to send: both webhook configurations, from the rules in force.

Source: `k8s.io/api` admissionregistration/v1 types.go, v0.36. A resource of which only some objects are sent has an entry
of its own, so that a condition that cannot be evaluated holds up nothing else. Where nothing can be refused or changed,
no more than warnings and records are lost while the webhook does not answer, and every request goes through.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gpugate.webhook.generate.judged_resources import mutated, validated
from gpugate.webhook.generate.match_conditions import CHANGES_WHAT_IS_JUDGED, match_conditions
from gpugate.webhook.generate.rules import rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.generate.judged_resources import Judged

FailurePolicy: TypeAlias = Literal["Fail", "Ignore"]
_Object: TypeAlias = dict[str, Any]  # Any: the JSON edge

_DOMAIN = "gpugate.dev"
_TIMEOUT_SECONDS = 5
# The API server writes it on every namespace, and nobody can change it.
_NAMESPACE_NAME = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class Server:
    """Where the webhook answers.

    Attributes:
        ca_bundle: the authorities that its certificate is checked against, PEM.
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
        return {**where, "caBundle": base64.b64encode(self.ca_bundle).decode("ascii")}


def webhook_configurations(
    ruleset: Ruleset,
    server: Server,
    *,
    failure_policy: FailurePolicy = "Fail",
    mutating_failure_policy: FailurePolicy = "Ignore",
) -> tuple[_Object, _Object]:
    """Return the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration for some rules.

    Args:
        ruleset: the rules; a policy file that turns on more needs other configurations.
        server: where they are judged.
        failure_policy: what becomes of a request that could be refused when the webhook does not answer.
        mutating_failure_policy: the same for one that could be changed; what it becomes is validated anyway.
    """
    mutating = _webhooks("mutate", mutated(ruleset), ruleset, mutating_failure_policy)
    validating = _webhooks("validate", validated(ruleset), ruleset, failure_policy)
    selector = _outside({*ruleset.config.excluded_namespaces, server.namespace})
    common = {
        "namespaceSelector": selector,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }
    to_mutate = {"clientConfig": server.client_config("mutate"), **common, "reinvocationPolicy": "IfNeeded"}
    to_validate = {"clientConfig": server.client_config("validate"), **common}
    return (
        _configuration("MutatingWebhookConfiguration", ({**each, **to_mutate} for each in mutating)),
        _configuration("ValidatingWebhookConfiguration", ({**each, **to_validate} for each in validating)),
    )


def _webhooks(
    phase: str, judged: Iterable[Judged], ruleset: Ruleset, failure_policy: FailurePolicy
) -> Iterator[_Object]:
    # The audit log keeps the first annotation of a name, and the webhook's is part of it: two must not share theirs.
    domain = f"{phase}.{_DOMAIN}"
    whole: dict[bool, list[Judged]] = {True: [], False: []}
    for each in judged:
        conditions = match_conditions(each, ruleset.config.platform)
        if conditions:
            name = f"{each.plural}.{each.group}.{domain}" if each.group else f"{each.plural}.{domain}"
            yield _webhook(name, [each], failure_policy, conditions)
        else:
            whole[each.enforced].append(each)
    for name, several in ((f"objects.{domain}", whole[True]), (f"warnings.{domain}", whole[False])):
        if several:
            yield _webhook(name, several, failure_policy)


def _webhook(
    name: str, judged: list[Judged], failure_policy: FailurePolicy, conditions: Iterable[_Object] = ()
) -> _Object:
    enforced = any(each.enforced for each in judged)
    return {
        "name": name,
        "rules": rules(judged),
        "failurePolicy": failure_policy if enforced else "Ignore",
        "matchConditions": [CHANGES_WHAT_IS_JUDGED, *conditions],
    }


def _outside(namespaces: set[str]) -> _Object:
    return {"matchExpressions": [{"key": _NAMESPACE_NAME, "operator": "NotIn", "values": sorted(namespaces)}]}


def _configuration(kind: str, webhooks: Iterable[_Object]) -> _Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "gpugate", "labels": {"app.kubernetes.io/name": "gpugate"}},
        "webhooks": list(webhooks),
    }
