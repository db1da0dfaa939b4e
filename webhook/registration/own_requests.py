"""What policies outside the library add to the registration of the library: requests and permissions.

The Helm chart registers the webhook for the library alone, because Helm cannot read policies. What is added has one entry of
its own in each configuration, which always has `failurePolicy: Ignore`. An object that the library's entries send is not sent
by it again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from gpugate.policies.catalog import CATALOG, IDS
from gpugate.policies.engine.config import GpugateError, PolicyEntry
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.concerns import covers, without
from gpugate.webhook.registration.entries import EvaluatedResource, Phase, mutated, rules, validated, whole_catalogue
from gpugate.webhook.registration.match_conditions import CHANGES_WHAT_IS_EVALUATED, match_conditions
from gpugate.webhook.registration.rbac import audit_rules, rbac

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.objects import Operation
    from gpugate.policies.sdk.policy import Policy

_Object: TypeAlias = dict[str, Any]  # Any: the JSON edge
# API group and name in URLs.
Resource: TypeAlias = tuple[str, str]
_NAME: Final = "own"
# `k8s.io/kubernetes` pkg/apis/admissionregistration/validation/validation.go, v1.36: no more match conditions of an entry.
_MOST_CONDITIONS: Final = 64
_PHASES: Final[tuple[Phase, ...]] = ("mutate", "validate")


class TooManyKindsError(GpugateError):
    """Policies outside the library are about more kinds than one entry can have conditions for."""


@dataclass(frozen=True, slots=True)
class Added:
    """What one configuration gets: an entry without where the webhook is; without rules if there is nothing to add."""

    rules: Sequence[_Object]
    conditions: Sequence[_Object]


def entry_name(phase: Phase) -> str:
    """Return the name of the entry."""
    return f"{_NAME}.{phase}.gpugate.dev"


ENTRY_NAMES: Final = frozenset(map(entry_name, _PHASES))


def own_policies(ruleset: Ruleset) -> Sequence[Policy]:
    """Return the policies outside the library of a ruleset."""
    library = frozenset(IDS)
    return [policy for policy in ruleset.catalog if policy.id not in library]


def _bound(ruleset: Ruleset, *others: Policy) -> Ruleset:
    """Bind the policies outside the library of a ruleset, and others; the former are on, as the library's in the chart."""
    own = own_policies(ruleset)
    on = {policy.id: PolicyEntry(mode="enforce") for policy in own}
    config = msgspec.structs.replace(ruleset.config, mode=None, policies=on, namespaces={}, exemptions=())
    return bind((*others, *own), config)


def added(ruleset: Ruleset) -> Mapping[Phase, Added]:
    """Return the entries for the policies outside the library of a ruleset."""
    own = _bound(ruleset)
    if not own.rules:
        return dict.fromkeys(_PHASES, Added((), ()))
    library = whole_catalogue(ruleset.config)
    # Workloads of which a policy evaluates only the Pod template are sent for the library anyway.
    named = {(kind.group, kind.plural) for rule in own.rules for kind in rule.policy.kinds}
    return {
        "mutate": _added(mutated(own), mutated(library), named, ruleset.config),
        "validate": _added(validated(own), validated(library), named, ruleset.config),
    }


def _added(
    own: Sequence[EvaluatedResource],
    library: Sequence[EvaluatedResource],
    named: Collection[Resource],
    config: PolicyConfig,
) -> Added:
    known = {(resource.group, resource.plural): resource for resource in library}
    left = [
        _not_sent(resource, known.get((resource.group, resource.plural)))
        for resource in own
        if (resource.group, resource.plural) in named
    ]
    resources = [resource for resource in left if resource.requests]
    if not resources:
        return Added((), ())
    others = [
        f"{resource.group}/{resource.plural}"
        for resource in resources
        if (resource.group, resource.plural) not in known
    ]
    conditions = tuple(map(dict, match_conditions(resources, config.platform)))
    if others:
        # A policy in Python may read any field of a kind that the library does not know.
        names = ", ".join(f"'{name}'" for name in others)
        expression = f"request.resource.group + '/' + request.resource.resource in [{names}] ||\n"
        conditions[0]["expression"] = expression + CHANGES_WHAT_IS_EVALUATED["expression"]
    return Added(tuple(rules(resources)), conditions)


def _not_sent(own: EvaluatedResource, library: EvaluatedResource | None) -> EvaluatedResource:
    """Return what of a resource the library's entries do not send; without requests if they send it all."""
    if library is None:
        return own
    sent: dict[str, frozenset[Operation]] = {}
    for (subresource, _), operations in library.requests.items():
        # Rules select every version of a resource, because they match equivalent requests.
        sent[subresource] = sent.get(subresource, frozenset()) | operations
    missing = {key: operations - sent.get(key[0], frozenset()) for key, operations in own.requests.items()}
    missing = {key: operations for key, operations in missing.items() if operations}
    if covers(library.concern, own.concern):
        return replace(own, requests=missing)
    if missing:
        # One condition is for all operations, so some objects are sent twice.
        return own
    return replace(own, concern=without(own.concern, library.concern) & ~library.concern)


def chart_values(ruleset: Ruleset) -> _Object:
    """Return the Helm values that register the policies outside the library of a ruleset.

    Raises:
        TooManyKindsError: their conditions are too many for one entry.
    """
    entries = added(ruleset)
    # The chart adds one, on Karpenter.
    most = max(len(entry.conditions) for entry in entries.values()) + 1
    if most > _MOST_CONDITIONS:
        raise TooManyKindsError(
            f"the policies outside the library need {most} match conditions, and an entry may have {_MOST_CONDITIONS}: "
            "let fewer of them have `concerns`"
        )
    written = {
        phase: {"rules": list(entry.rules), "matchConditions": list(entry.conditions)} if entry.rules else {}
        for phase, entry in entries.items()
    }
    library = whole_catalogue(ruleset.config)
    roles = {
        "webhookRules": _more(_reads(_bound(ruleset)), _reads(library)),
        "auditRules": _more(audit_rules(_bound(ruleset, *CATALOG)), audit_rules(library)),
    }
    return {"policies": {"registration": {**written, **roles}}}


def _reads(ruleset: Ruleset) -> Sequence[_Object]:
    role, _ = rbac(ruleset, "", "")
    reads: Sequence[_Object] = role["rules"]
    return reads


def _more(wanted: Sequence[_Object], granted: Sequence[_Object]) -> list[_Object]:
    """Return rules of a role without the resources that other rules have."""
    has = {(group, resource) for rule in granted for group in rule["apiGroups"] for resource in rule["resources"]}
    left = []
    for rule in wanted:
        (group,) = rule["apiGroups"]
        resources = [resource for resource in rule["resources"] if (group, resource) not in has]
        left += [{**rule, "resources": resources}] if resources else []
    return left
