"""The entries of the webhook configurations: one for each risk group and phase, with its rules.

A resource of which only some requests can be denied is sent through two entries: through that of its group those that can,
and through another, which never says `failurePolicy: Fail`, the rest. So a Pod that no policy can deny starts while the
webhook is unavailable, whatever the failure policy of its group: a CNI that tolerates every taint, for one.

Wildcards are used only for the versions of workloads that no policy evaluates by version. A rule for `*/*` would send
the API server's own requests, such as token reviews, and block nodes, leases and certificates while the webhook is
unavailable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyEntry
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk import objects
from gpugate.policies.sdk.concerns import EVERY_OBJECT, any_of, covers, without
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import Kind, Operation
from gpugate.policies.sdk.pod_templates import TEMPLATES
from gpugate.webhook.registration.match_conditions import match_conditions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.engine.ruleset import Bound, Rule, Ruleset
    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.platform import Platform
    from gpugate.policies.sdk.policy import Handler


class RiskGroup(Enum):
    """Kinds whose requests wait, or do not, for the same reasons; each has an entry of its own in a configuration."""

    POOLS = "pools"
    NODECLAIMS = "nodeclaims"
    PODS = "pods"
    WORKLOADS = "workloads"
    SCALING = "scaling"
    CLAIMS = "claims"
    DISRUPTION = "disruption"
    QUOTAS = "quotas"
    NAMESPACES = "namespaces"

    @property
    def may_wait(self) -> bool:
        """Whether its requests may wait: nodes come with NodeClaims, and workloads get no more than warnings."""
        return self not in {RiskGroup.NODECLAIMS, RiskGroup.WORKLOADS}

    @property
    def written_by_karpenter(self) -> bool:
        """Whether Karpenter writes such objects, which must not depend on the webhook.

        It notes a hash on every NodePool and EC2NodeClass (`sigs.k8s.io/karpenter` v1.14 pkg/controllers/nodepool/hash).
        """
        return self in {RiskGroup.POOLS, RiskGroup.NODECLAIMS}


_OF_RESOURCE: Final = {
    ("", "pods"): RiskGroup.PODS,
    ("", "namespaces"): RiskGroup.NAMESPACES,
    ("", "resourcequotas"): RiskGroup.QUOTAS,
    ("karpenter.sh", "nodeclaims"): RiskGroup.NODECLAIMS,
    ("karpenter.sh", "machines"): RiskGroup.NODECLAIMS,
}
_OF_GROUP: Final = {
    "karpenter.sh": RiskGroup.POOLS,
    "karpenter.k8s.aws": RiskGroup.POOLS,
    "provisioning.karpenter.sh": RiskGroup.POOLS,
    "eks.amazonaws.com": RiskGroup.POOLS,
    "keda.sh": RiskGroup.SCALING,
    "autoscaling": RiskGroup.SCALING,
    "resource.k8s.io": RiskGroup.CLAIMS,
    "policy": RiskGroup.DISRUPTION,
}


def risk_group(resource: EvaluatedResource) -> RiskGroup:
    """Return the group of a resource; an unknown one is never in a group with failurePolicy Fail."""
    known = _OF_RESOURCE.get((resource.group, resource.plural)) or _OF_GROUP.get(resource.group)
    return known or RiskGroup.WORKLOADS


@dataclass(slots=True)
class EvaluatedResource:
    """A resource, with its subresources, that policies evaluate.

    Attributes:
        group: its API group.
        plural: its name in URLs.
        namespaced: whether its objects are in namespaces.
        requests: subresource (empty for the object itself), versions -> the operations that are evaluated.
        concern: holds for every object that a policy evaluates.
        enforced: holds for every object of which a request can be denied or mutated at admission, without those that
            have findings only in a Pod template.
        advised: holds for every object that can get a warning or a record from a policy that does not deny or mutate.
    """

    group: str
    plural: str
    namespaced: bool
    requests: dict[tuple[str, tuple[str, ...]], frozenset[Operation]] = field(default_factory=dict)
    concern: Concern = field(default_factory=any_of)
    enforced: Concern = field(default_factory=any_of)
    advised: Concern = field(default_factory=any_of)

    def add(self, kind: Kind, operations: frozenset[Operation], concern: Concern, *, enforced: bool) -> None:
        """Add the requests about a kind."""
        key = (kind.subresource, kind.versions)
        self.requests[key] = self.requests.get(key, frozenset()) | operations
        self.concern = any_of(self.concern, concern)
        if enforced:
            self.enforced = any_of(self.enforced, concern)
        else:
            self.advised = any_of(self.advised, concern)


def mutated(ruleset: Ruleset) -> Sequence[EvaluatedResource]:
    """Return what mutations are about; never workloads, whose Pods are mutated when they come."""
    return _evaluated_resources(_bound(ruleset, mutating=True), frozenset())


def validated(ruleset: Ruleset) -> Sequence[EvaluatedResource]:
    """Return what checks are about; where Pods are, so is every workload with a Pod template, which gets warnings."""
    bound = _bound(ruleset, mutating=False)
    of_pods = [handler.operations for _, handler in bound if objects.POD in handler.kinds]
    return _evaluated_resources(bound, frozenset().union(*of_pods))


def _bound(ruleset: Ruleset, *, mutating: bool) -> Sequence[Bound]:
    return [(r, handler) for r in ruleset.rules for handler in r.policy.handlers if handler.mutates is mutating]


def _evaluated_resources(bound: Iterable[Bound], on_workloads: frozenset[Operation]) -> Sequence[EvaluatedResource]:
    by_resource: dict[tuple[str, str], EvaluatedResource] = {}

    def add(kind: Kind, operations: frozenset[Operation], concern: Concern, *, enforced: bool) -> None:
        resource = by_resource.setdefault(
            (kind.group, kind.plural), EvaluatedResource(kind.group, kind.plural, kind.namespaced)
        )
        resource.add(kind, operations, concern, enforced=enforced)

    for rule, handler in bound:
        for kind in handler.kinds:
            add(kind, handler.operations, handler.concerns, enforced=_enforces(rule, handler))
    for group, name in TEMPLATES if on_workloads else ():
        add(workload_kind(group, name), on_workloads, EVERY_OBJECT, enforced=False)
    return [by_resource[key] for key in sorted(by_resource)]


def _enforces(rule: Rule, handler: Handler[Any]) -> bool:  # Any: the parameters do not matter
    return handler.at_most is Stance.ENFORCE and Stance.ENFORCE in {rule.mode, *rule.namespace_modes.values()}


_KNOWN: Final = {(kind.group, kind.name): kind for kind in vars(objects).values() if isinstance(kind, Kind)}


def workload_kind(group: str, name: str) -> Kind:
    """Return the kind of a workload; one that no policy names is evaluated in every version.

    The plurals of all workloads are formed in the same way.
    """
    return _KNOWN.get((group, name)) or Kind(group, ("*",), name, f"{name.lower()}s")


def rules(resources: Iterable[EvaluatedResource]) -> list[dict[str, Any]]:
    """Return the rules of a webhook for some resources; those that differ in their resource alone are one."""
    plurals: dict[tuple[str, tuple[str, ...], frozenset[Operation], bool], list[str]] = {}
    for resource in resources:
        for (subresource, versions), operations in resource.requests.items():
            key = (resource.group, versions, operations, resource.namespaced)
            plurals.setdefault(key, []).append(f"{resource.plural}/{subresource}" if subresource else resource.plural)
    return [
        {
            "apiGroups": [group],
            "apiVersions": list(versions),
            "resources": names,
            "operations": [operation.value for operation in Operation if operation in operations],
            "scope": "Namespaced" if namespaced else "Cluster",
        }
        for (group, versions, operations, namespaced), names in plurals.items()
    ]


Phase: TypeAlias = Literal["mutate", "validate"]
_Object: TypeAlias = dict[str, Any]  # Any: the JSON edge


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a webhook configuration, without where the webhook is.

    Attributes:
        name: unique over both configurations: the audit log keeps the first annotation of a name.
        group: what it is about.
        rules: which requests it is for.
        conditions: the match conditions.
        may_wait: whether a request can be refused or changed, so that it may be made to wait for an answer.
    """

    name: str
    group: RiskGroup
    rules: Sequence[_Object]
    conditions: Sequence[_Object]
    may_wait: bool


def entries(ruleset: Ruleset, phase: Phase) -> Iterator[Entry]:
    """Yield the entries for the rules in force, in the order of the groups; none for a group that no rule is about."""
    resources = mutated(ruleset) if phase == "mutate" else validated(ruleset)
    for group in RiskGroup:
        of_group = [resource for resource in resources if risk_group(resource) is group]
        waiting, advised = _parts(of_group)
        name = f"{group.value}.{phase}.gpugate.dev"
        platform = ruleset.config.platform
        if waiting and group.may_wait:
            yield _entry(name, group, waiting, platform, may_wait=True)
            if advised:
                yield _entry(f"warnings.{name}", group, advised, platform, may_wait=False)
        elif of_group:
            yield _entry(name, group, of_group, platform, may_wait=False)


_MODES: Final[dict[Stance, Literal["warn", "enforce"]]] = {Stance.WARN: "warn", Stance.ENFORCE: "enforce"}


def whole_catalogue(config: PolicyConfig) -> Ruleset:
    """Return every rule, in its shipped mode or enforced if it ships off, for a platform that set all its conventions.

    The entries for it are right whatever modes a policy file gives; the Helm chart installs them.
    """
    on = {policy.id: PolicyEntry(mode="enforce") for policy in CATALOG if policy.mode is Stance.OFF}
    on |= {policy.id: PolicyEntry(mode=_MODES[policy.mode]) for policy in CATALOG if policy.conventions}
    return bind(CATALOG, msgspec.structs.replace(config, mode=None, policies=on, namespaces={}))


def _entry(
    name: str, group: RiskGroup, resources: Sequence[EvaluatedResource], platform: Platform, *, may_wait: bool
) -> Entry:
    return Entry(name, group, rules(resources), tuple(match_conditions(resources, platform)), may_wait)


def _parts(resources: Iterable[EvaluatedResource]) -> tuple[list[EvaluatedResource], list[EvaluatedResource]]:
    """Return of which requests some can be denied or mutated, and those that get warnings and records at most."""
    waiting, advised = [], []
    for resource in resources:
        if resource.enforced == any_of():
            advised.append(resource)
        elif covers(resource.enforced, resource.concern):
            waiting.append(resource)
        else:
            waiting.append(replace(resource, concern=resource.enforced))
            remainder = without(resource.advised, resource.enforced)
            if remainder != any_of():
                advised.append(replace(resource, concern=remainder & ~resource.enforced))
    return waiting, advised
